"""A report to look at: one file without anything beside it, which works from a file share too.

Verdicts first, a row for each claim; then each claim with its counterexample and its pictures,
which `pytest_dp.report.drawings` draws.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from html import escape
from importlib.resources import files

from pytest_dp.basics import clocks
from pytest_dp.report.drawings import Drawing, draw_pictures
from pytest_dp.report.record import Record
from pytest_dp.report.summary_table import (
    HEADS,
    LOW_CONFIDENCE,
    ORDER,
    PASSING,
    STATUSES,
    facts,
    legend,
    look_of,
    short_finding,
    table_cells,
    total,
    verdict,
)

_UNPRINTABLE = re.compile(r"\x1b\[[0-9;]*m|[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Terminal colours, and characters that no HTML file may hold."""


def page(
    records: Sequence[Record],
    versions: Mapping[str, str],
    now: datetime | None = None,
    project: str = "",
) -> str:
    """Return the report of a run as one HTML document.

    Records that a test expects to be broken are only mentioned. `versions` are those of Python and
    of packages, `now` is in UTC (by default the present), and `project` says which code was
    audited.
    """
    now = now or clocks.now()
    claims = sorted((record for record in records if not record.expected), key=_sort_key)
    ran = [f"{name} {version}" for name, version in versions.items()]
    about = ", ".join([project, f"{now:%Y-%m-%d %H:%M} UTC", *ran]).removeprefix(", ")
    title = f"Privacy: {total(claims)}" if claims else "Privacy claims: none were audited"
    body = [
        f"<header><h1>{_escape(title)}</h1>",
        f'<p class="dp-soft">{_escape(about)}</p></header>',
        "<main>",
    ]
    if claims:
        body += [_make_table(claims), f"<p>{_escape(' '.join(legend(claims)))}</p>"]
    expected = dict.fromkeys(record.name for record in records if record.expected)
    if expected:
        names = ", ".join(map(_code, expected))
        body.append(f"<p>Broken, as the test expects: {names}.</p>")
    body += [_details_of_claim(number, record) for number, record in enumerate(claims, 1)]
    return _make_document(_escape(title), "\n".join([*body, "</main>"]))


def _sort_key(record: Record) -> tuple[int, bool, bool]:
    """Return a sort key: alarms first, then passes broken on other inputs, then weak passes."""
    passed = record.status in PASSING
    alarm = ORDER.index("no violation" if passed else record.status)
    return alarm, not (passed and record.beyond), record.strength not in LOW_CONFIDENCE


def fragment(record: Record) -> str:
    """Return one claim as HTML for another page, such as a notebook."""
    name, outcome = f"<p>{_code(record.name)}</p>", _verdict_tag("p", record)
    style, details = f"<style>{_style_sheet()}</style>", _make_details(record)
    return f'{style}<div class="dp">{name}{outcome}{details}</div>'


def _make_document(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="pytest-dp">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>\n{_style_sheet()}</style>\n</head>\n"
        f'<body class="dp">\n{body}\n</body>\n</html>\n'
    )


@cache
def _style_sheet() -> str:
    """Return the style sheet of all pages."""
    return files("pytest_dp.report").joinpath("page.css").read_text(encoding="utf-8")


def _make_table(claims: Sequence[Record]) -> str:
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("verdict", "claim", *HEADS))
    rows = (_make_row(number, record) for number, record in enumerate(claims, start=1))
    return (
        '<h2 id="claims">Claims</h2>\n'
        f'<table aria-labelledby="claims">\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{''.join(rows)}</tbody>\n</table>"
    )


def _make_row(number: int, record: Record) -> str:
    """Return the table row of a claim, with a link to its details."""
    cells = "".join(
        f'<td class="dp-text" data-label="{head}">{_escape(cell)}</td>'
        for head, cell in zip(HEADS, table_cells(record), strict=True)
    )
    look = look_of(record)
    return (
        f'<tr><td class="dp-verdict dp-{look.style}">{look.sign} {_escape(verdict(record))}</td>'
        f'<th scope="row"><a href="#claim-{number}">{_code(record.name)}</a><br>'
        f'<span class="dp-soft">{_escape(record.place)}</span></th>{cells}</tr>\n'
    )


def _verdict_tag(tag: str, record: Record) -> str:
    """Return an element `tag` with the verdict and the finding."""
    finding = ": ".join(filter(None, (verdict(record), short_finding(record))))
    look = look_of(record)
    return f'<{tag} class="dp-verdict dp-{look.style}">{look.sign} {_escape(finding)}</{tag}>'


def _details_of_claim(number: int, record: Record) -> str:
    """Return a claim with all its facts, folded if it passed with confidence on all inputs."""
    passed = record.status in PASSING and record.strength not in LOW_CONFIDENCE
    is_open = "" if passed and not record.beyond else " open"
    return (
        f"<details{is_open}><summary>"
        f"{_verdict_tag('span', record)} {_code(record.name)}</summary>\n"
        f'<div id="claim-{number}"><p class="dp-soft">{_escape(record.place)}</p>'
        f"{_make_details(record)}</div></details>\n"
    )


def _make_details(record: Record) -> str:
    """Return the message, pictures and facts of a claim; a remark if pictures cannot be drawn."""
    begun = " ".join(record.details.split()).startswith(record.headline)
    parts = [] if begun else [f"<p>{_escape(record.headline)}</p>"]
    if record.details:
        label = f"{STATUSES[record.status].words}: {record.name}"
        attributes = f'tabindex="0" role="region" aria-label="{_escape(label)}"'
        parts.append(f"<pre {attributes}>{_escape(record.details)}</pre>")
    if record.beyond is not None:
        parts.append(_make_details(record.beyond))
    try:
        drawn = draw_pictures(record)
    except Exception as error:  # of numbers that no axis holds; the rest of the page stands
        drawn = []
        parts.append(f"<p>Its pictures could not be drawn: {_escape(repr(error))}</p>")
    if drawn:
        parts.append(f'<div class="dp-pictures">{"".join(map(_make_figure, drawn))}</div>')
    if record.status == "beyond":
        return "\n".join(parts)
    known = facts(record)
    if record.reproduce and record.status != "violated":  # a violation's message ends with it
        known.append(("reproduce", record.reproduce))
    listed = "".join(f"<dt>{_escape(name)}</dt><dd>{_escape(said)}</dd>" for name, said in known)
    return "\n".join([*parts, f"<dl>{listed}</dl>" if listed else ""])


def _make_figure(drawing: Drawing) -> str:
    return (
        f"<figure><h3>{_escape(drawing.heading)}</h3>{drawing.svg}"
        f"<figcaption>{_escape(drawing.caption)}</figcaption></figure>"
    )


def _code(name: str) -> str:
    """Return the name of a test as code, which narrow screens may break where its parts end."""
    parts = re.sub(r"([_/.:[-])(?=[^_:])", r"\1<wbr>", _escape(name))
    return f"<code>{parts}</code>"


def _escape(said: str) -> str:
    """Return a text escaped for HTML, without terminal colours and unprintable characters."""
    return escape(_UNPRINTABLE.sub("", said))
