"""The Python API as a page, written from docstrings.

`docs/reference/api.md` names what it shows in comments: ``<!-- api: pytest_dp.audit -->``, with
``members=a,b`` for parts of a class or a module, ``name=`` for another heading, and ``level=`` for
its depth. `make pages` writes the text from there to ``<!-- end -->``, and a test compares it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from typing import Any

from pages import ROOT

PAGE = ROOT / "docs/reference/api.md"
_ENTRY = re.compile(
    r"(<!-- api: (?P<path>[\w.]+)(?P<options>[^>]*) -->\n).*?(<!-- end -->\n)", re.DOTALL
)
_SECTION = re.compile(r"^(?P<title>[A-Z]\w+)\n-+\n", re.MULTILINE)
WIDTH = 76


def written() -> str:
    """Return the page, with each entry as its docstring has it now."""
    return _ENTRY.sub(
        lambda entry: entry[1] + _entry(entry["path"], _options(entry["options"])) + entry[4],
        PAGE.read_text(encoding="utf-8"),
    )


def _options(text: str) -> dict[str, str]:
    return dict(option.split("=", 1) for option in text.split())


def _entry(path: str, options: dict[str, str]) -> str:
    """Return the text of an object and of those members that are asked for."""
    shown, level = _object(path), int(options.get("level", "3"))
    name = options.get("name", path.rpartition(".")[2])
    members = options["members"].split(",") if "members" in options else []
    if inspect.ismodule(shown):
        return "".join(_one(getattr(shown, each), each, level) for each in members)
    text = _one(shown, name, level)
    return text + "".join(
        _one(inspect.getattr_static(shown, each), f"{name}.{each}", level + 1) for each in members
    )


def _object(path: str) -> Any:
    """Return what a dotted path names: a module, or something in one."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        owner, _, name = path.rpartition(".")
        return getattr(_object(owner), name)


def _one(shown: Any, name: str, level: int) -> str:
    """Return the heading, the signature and the docstring of an object."""
    docstring = inspect.getdoc(shown.fget if isinstance(shown, property) else shown)
    assert docstring, f"{name} has no docstring"
    heading = f"{'#' * level} {name}\n\n"
    signature = "" if isinstance(shown, property) else _signature(shown, name)
    return heading + signature + _markdown(docstring) + "\n"


def _signature(shown: Any, name: str) -> str:
    """Return how to call an object; empty for a class that users do not make."""
    if inspect.isclass(shown) and "Attributes\n---" in (inspect.getdoc(shown) or ""):
        return ""
    parameters = inspect.signature(shown).parameters.values()
    plain = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in parameters
        if each.name != "self"
    ]
    arguments = str(inspect.Signature(plain))[1:-1].replace("=Ellipsis", "=...")
    called = f"{name}({arguments})"
    if len(called) > WIDTH:
        called = (
            f"{name}(\n"
            + textwrap.fill(arguments, WIDTH, initial_indent="    ", subsequent_indent="    ")
            + "\n)"
        )
    return f"```text\n{called}\n```\n\n"


def _markdown(docstring: str) -> str:
    """Return a docstring in NumPy's style as Markdown, each section as a list."""
    head, *rest = _SECTION.split(docstring)
    text = _paragraphs(head)
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        listed = title not in ("Examples", "Notes", "References", "See")
        text += f"\n**{title}**\n\n" + (_list(body) if listed else _paragraphs(body))
    return text


def _list(body: str) -> str:
    """Return the entries of a section, each a bullet with its name and type."""
    lines = []
    for entry in re.split(r"\n(?=\S)", body.strip()):
        name, _, about = entry.partition("\n")
        name, _, kind = name.partition(" : ")
        said = " ".join(_inline(textwrap.dedent(about)).split())
        lines.append(
            f"* `{name.strip()}`"
            + (f" ({_inline(kind)})" if kind else "")
            + (f": {said}" if said else "")
        )
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> str:
    """Return prose as it is, and examples of a Python prompt as code."""
    parts = []
    for part in re.split(r"\n\s*\n", text.strip()):
        if part.startswith(">>>"):
            parts.append(f"```pycon\n{part}\n```")
        else:
            parts.append(_inline(part))
    return "\n\n".join(parts) + "\n"


def _inline(text: str) -> str:
    """Return text with code between single backticks."""
    return re.sub(r"``([^`]+)``", r"`\1`", text)
