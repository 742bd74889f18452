"""The report in a browser: light, dark, printed, narrow, by keyboard, and without scripts."""

from __future__ import annotations

from datetime import datetime

import pytest
from browser import CHROMIUM, Browser

from pytest_dp import audit
from pytest_dp.report.html import page
from pytest_dp.report.record import Record

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the report with"),
]


def count(records, rng):
    return len(records) + rng.laplace(scale=0.5)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A violation, two passes, and a claim that was not audited."""
    records = [Record.of_error("broken[eps=1.0]", "clinic.py", 3, "It <i>raised</i>.\n\n0 of 1")]
    for name, eps in (("leaky", 0.8), ("fine", 2.0), ("another_fine_one_of_a_long_name", 2.5)):
        nodeid = f"shop/stats.py::{name}_count[eps={eps}]"
        result = audit(count, eps=eps, pairs=[([0], [])], max_samples=60_000, seed=3)
        records.append(Record.of(result, nodeid, "shop/stats.py", 8, pictures=True))
    file = tmp_path_factory.mktemp("report") / "claims.html"
    file.write_text(page(records, {"pytest-dp": "1.0"}, datetime(2026, 11, 22)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


ROWS = "[...document.querySelectorAll('tbody tr')]"
SHOWN = f"{ROWS}.filter(row => row.checkVisibility()).map(row => row.dataset.status)"
NAMES = f"{ROWS}.map(row => row.querySelector('code').textContent)"


def test_a_browser_shows_it_without_complaint(browser, report):
    hidden = "[...document.querySelectorAll('tbody td')].filter(cell => !cell.offsetWidth).length"
    for width, scheme in ((1_200, "light"), (1_200, "dark"), (390, "light"), (320, "dark")):
        browser.open(report, width=width, prefers_color_scheme=scheme)
        assert browser.complaints() == []
        assert browser.requests() == [report.as_uri()]
        assert browser.run(hidden) == 0, "no column is left out"
        assert browser.run("document.documentElement.scrollWidth") <= width
        browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert browser.run("document.documentElement.scrollWidth") <= width
        wide = "[...document.querySelectorAll('pre')].filter(p => p.scrollWidth > p.clientWidth)"
        assert browser.run(f"{wide}.length") == 0, "nothing is read by scrolling to the side"


CONTRAST = """(() => {
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const contrast = (element) => {
    const style = getComputedStyle(element);
    const ink = light(element instanceof SVGElement ? style.fill : style.color);
    return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
  };
  const told = "h1, h2, h3, p, td, th, span, figcaption, dt, dd, code, svg text";
  return Math.min(...[...document.querySelectorAll(told)].map(contrast));
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_ground(browser, report, scheme):
    browser.open(report, prefers_color_scheme=scheme)
    ground = browser.run("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 24, 27)")
    assert browser.run(CONTRAST) >= 4.5  # what WCAG 2.2 asks of text


def test_print_is_dark_on_white_without_controls(browser, report):
    browser.open(report, prefers_color_scheme="dark")
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.send("Emulation.setEmulatedMedia", media="print", features=features)
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.run("document.querySelector('.dp-controls').checkVisibility()")
    assert browser.run("document.querySelector('svg').checkVisibility()")
    browser.send("Emulation.setEmulatedMedia", media="", features=[])
    assert browser.run("document.querySelector('.dp-controls').checkVisibility()")


def test_rows_are_filtered_with_what_belongs_to_them(browser, report):
    browser.open(report)
    assert browser.run(SHOWN) == ["violated", "error", "no violation", "no violation"]
    choose = (
        "(() => {{ const field = document.querySelector('{0}'); field.value = '{1}';"
        " field.dispatchEvent(new Event('{2}')); }})()"
    )
    browser.run(choose.format(".dp-controls input", "COUNT shop", "input"))
    assert browser.run(SHOWN) == ["violated", "no violation", "no violation"]
    assert browser.run("document.querySelector('output').textContent") == "3 of 4 shown"
    browser.run(choose.format(".dp-controls select", "no violation", "change"))
    assert browser.run(SHOWN) == ["no violation"] * 2
    folded = "[...document.querySelectorAll('details')].filter(d => d.checkVisibility()).length"
    assert browser.run(folded) == 2
    seen = "[...document.querySelectorAll('h2')].filter(h => h.checkVisibility())"
    headings = browser.run(f"{seen}.map(h => h.textContent)")
    assert headings == ["Claims", "No violation found"]


def test_a_keyboard_is_enough(browser, report):
    browser.open(report)
    focus = "document.activeElement.textContent.trim()"

    def tab_to(wanted: str) -> None:
        for _ in range(40):
            browser.press("Tab", 9)
            if browser.run(focus) == wanted:
                outline = browser.run("getComputedStyle(document.activeElement).outlineStyle")
                assert outline == "solid"
                return
        raise AssertionError(f"{wanted} was never reached")

    before, address = browser.run(NAMES), browser.run("location.href")
    tab_to("")  # the field for words
    browser.press("Enter", 13)
    assert browser.run("location.href") == address
    tab_to("claim")
    browser.press("Enter", 13)
    assert browser.run(NAMES) == sorted(before)
    browser.press("Enter", 13)
    assert browser.run(NAMES) == sorted(before, reverse=True)
    assert browser.run("document.querySelector('[aria-sort]').textContent") == "claim"
    tab_to("runs")
    browser.press("Enter", 13)
    samples = browser.run(f"{ROWS}.map(row => Number(row.cells[5].dataset.value))")
    assert samples == sorted(samples)

    is_open = "document.getElementById('claim-3').parentElement.open"
    assert not browser.run(is_open)
    tab_to("fine_count[eps=2.0]")
    browser.press("Enter", 13)
    browser.wait_for("document.activeElement.matches('summary')")
    assert browser.run(is_open)
    assert "fine_count" in browser.run(focus)
    browser.press("Enter", 13)
    assert not browser.run(is_open)
    tab_to("fine_count[eps=2.0]")  # the same place once more
    browser.press("Enter", 13)
    browser.wait_for("document.activeElement.matches('summary')")
    assert browser.run(is_open)


def test_without_scripts_it_is_all_there(browser, report):
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(report)
    assert len(browser.run(SHOWN)) == 4
    assert not browser.run("document.querySelector('.dp-controls').checkVisibility()")
    assert browser.run("document.querySelectorAll('thead button').length") == 0
    assert browser.run("document.querySelectorAll('svg').length") >= 2
    browser.send("Emulation.setScriptExecutionDisabled", value=False)
