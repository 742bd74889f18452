"""The report in HTML: complete, well-formed, by itself, and deaf to what users have put into it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from html.parser import HTMLParser

from results import BROKEN, PICTURES, rows

from pytest_dp.report.html import fragment, page

NOW = datetime(2026, 11, 22, 16, 40)
RAN = {"pytest-dp": "1"}
VOID = {"meta", "link", "input", "br", "wbr"}
SHAPES = {"rect", "path", "circle"}


class Page(HTMLParser):
    """A page taken apart; fails where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.words: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *each) for each in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in SHAPES
        self.tags[tag] += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    def of(self, name: str) -> list[str | None]:
        return [value for _, key, value in self.attributes if key == name]

    @property
    def text(self) -> str:
        return "".join(self.words)


DRAWN = (
    replace(rows()[0], pictures=PICTURES),
    replace(rows()[1], pictures=replace(PICTURES, outputs=None, event=None, attack=())),
)
"""A violation and a pass, with their pictures."""


def test_every_claim_has_its_row_and_all_that_is_known():
    records = rows()
    ran = {"python": "3.14", "pytest-dp": "1.2.3"}
    seen = Page(page(records, ran, NOW, "shop, commit 1a2b3c4"))
    assert "Privacy: 5 claims, 1 violated, 1 not audited, 1 inconclusive" in seen.text
    head = "shop, commit 1a2b3c4, 2026-11-22 16:40 UTC, python 3.14, pytest-dp 1.2.3"
    assert head in seen.text
    assert seen.tags["tr"] == 1 + len(records)
    assert seen.tags["details"] == len(records)
    for record in records:
        assert record.headline in seen.text
        assert record.details in seen.text
        assert seen.text.count(f"{record.path}:{record.line}") >= 2
        assert seen.text.count(record.name) >= 2
    for said in ("detects eps >= 1.32", "912 runs in 60 s are too few: raise max_seconds", "8f2c"):
        assert said in seen.text
    assert seen.of("open") == [None] * 3  # what is wrong is shown at once


def test_what_is_broken_on_other_inputs_stands_above_clean_passes():
    broken, fair, strong, *_ = rows()
    beyond = replace(fair, name="other inputs", beyond=replace(broken, status="beyond"))
    weak = replace(fair, name="weak one", strength="weak")
    text = Page(page([strong, weak, beyond, broken], RAN, NOW)).text
    order = [broken.name, beyond.name, weak.name, strong.name]
    assert sorted(order, key=text.index) == order


def test_nothing_is_fetched():
    text = page(DRAWN, RAN, NOW)
    assert "://" not in text
    assert "@import" not in text
    assert "url(" not in text
    assert set(Page(text).of("src")) == set()


HOSTILE = "</pre></title></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"


def test_what_users_have_written_is_text_and_nothing_else():
    odd = dict.fromkeys(
        ("nodeid", "name", "path", "headline", "details", "reason", "strongest", "claim"), HOSTILE
    )
    hostile = [replace(record, **odd, notes=(HOSTILE,), reproduce=HOSTILE) for record in DRAWN]
    outputs = DRAWN[0].pictures.outputs
    bars = tuple(replace(bar, label=HOSTILE) for bar in outputs.bars[:3])
    pictures = replace(DRAWN[0].pictures, outputs=replace(outputs, of=HOSTILE, bars=bars))
    hostile[0] = replace(hostile[0], pictures=pictures)
    expected = replace(hostile[1], name=f"expected {HOSTILE}", expected=True)
    seen = Page(page([*hostile, expected], {HOSTILE: HOSTILE}, NOW))
    assert seen.tags["script"] == seen.tags["img"] == 0
    assert not [name for _, name, _ in seen.attributes if name.startswith("on")]
    assert seen.text.count("alert(1)") >= 15
    assert HOSTILE in seen.text


def test_one_claim_alone_for_a_notebook():
    seen = Page(replace(BROKEN, pictures=PICTURES)._repr_html_())
    assert seen.tags == Counter(Page(fragment(DRAWN[0])).tags)
    assert seen.tags["svg"] == 2
    assert seen.tags["html"] == seen.tags["script"] == 0
    assert "violated: eps >= " in seen.text
