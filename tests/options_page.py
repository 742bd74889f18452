"""The table of options in `docs/reference/options.md`, written from the table of fields."""

from __future__ import annotations

import re

from pages import ROOT

from pytest_dp.claiming.setting_fields import OPTIONS, flag_of, shown_default

PAGE = ROOT / "docs/reference/options.md"


def written() -> str:
    """Return the page, with the table as the fields are now."""
    rows = [f"| `{flag_of(n)}` | {shown_default(f)} | {f.help} |\n" for n, f in OPTIONS.items()]
    table = "".join(["\n| option | default | meaning |\n| --- | --- | --- |\n", *rows, "\n"])
    text = PAGE.read_text(encoding="utf-8")
    return re.sub(r"(<!-- options -->\n).*?(<!-- end -->)", rf"\1{table}\2", text, flags=re.S)
