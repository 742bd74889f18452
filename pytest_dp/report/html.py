"""A report to look at: one file without anything beside it, which works from a file share too.

Verdicts first, a row for each claim; then each claim with its counterexample and its pictures. The
page is complete without scripts; with them its rows can be sorted and filtered. Pictures are drawn
by `pytest_dp.report.drawings`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from types import MappingProxyType

from pytest_dp.basics import clocks
from pytest_dp.report.alarms import ORDER, STATUSES
from pytest_dp.report.drawings import Drawing, drawings
from pytest_dp.report.record import Record
from pytest_dp.report.summary_table import (
    HEADS,
    POOR,
    facts,
    legend,
    row_cells,
    short_finding,
    total,
    verdict,
)

_UNPRINTABLE = re.compile(r"\x1b\[[0-9;]*m|[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Terminal colours, and characters that no HTML file may hold."""


def page(
    records: Sequence[Record],
    versions: Mapping[str, str],
    now: datetime | None = None,
    *,
    about: Mapping[str, str] = MappingProxyType({}),
    linked: Callable[[str], str] = str,
) -> str:
    """Return the report of a run as one HTML document.

    Records that a test expects to be broken are only mentioned. `versions` says what ran, and in
    which version; `now` is in UTC. `about` names project, commit, branch and profile, and `linked`
    leads from a file of the project to its address.
    """
    now = now or clocks.now()
    claims = [record for record in records if not record.expected]
    claims.sort(key=_rank)
    ran = ", ".join(f"{name} {version}" for name, version in versions.items())
    title = f"Privacy: {total(claims)}" if claims else "Privacy claims: none were audited"
    body = [
        f"<header><h1>{_text(title)}</h1>",
        "<dl>",
        *(f"<dt>{_text(name)}</dt><dd>{_text(said)}</dd>" for name, said in about.items()),
        f"<dt>run</dt><dd>{now:%Y-%m-%d %H:%M} UTC, {_text(ran)}</dd></dl></header>",
        "<main>",
    ]
    if claims:
        body += [_table(claims), f"<p>{_text(' '.join(legend(claims)))}</p>"]
    expected = dict.fromkeys(record.name for record in records if record.expected)
    if expected:
        names = ", ".join(map(_name, expected))
        body.append(f"<p>Broken, as the test expects: {names}.</p>")
    numbered = list(enumerate(claims, start=1))
    for heading, chosen in groupby(numbered, key=lambda claim: _heading(claim[1])):
        body.append(f"<section><h2>{heading}</h2>")
        body += [_details_of_claim(number, record, linked) for number, record in chosen]
        body.append("</section>")
    body.append("</main>")
    return _document(_text(title), "\n".join(body))


def _rank(record: Record) -> tuple[int, bool, bool, int]:
    """Return what alarms first; of passes those broken on other inputs, then the weak ones."""
    at = ORDER.index(record.status)
    alarm = ORDER.index("no violation") if record.status == "unchanged" else at
    return alarm, not _only_beyond(record), record.strength not in POOR, at


def _only_beyond(record: Record) -> bool:
    """Return whether a claim is broken only outside of its declared inputs."""
    return record.beyond is not None and record.status in ("no violation", "unchanged")


def _heading(record: Record) -> str:
    """Return the heading above claims of this kind; low-confidence passes have their own."""
    if _only_beyond(record):
        return STATUSES["beyond"].heading
    heading = STATUSES[record.status].heading
    return f"{heading}: {record.strength}" if record.strength in POOR else heading


def fragment(record: Record) -> str:
    """Return one claim, to be shown within another page, such as a notebook."""
    verdict = _verdict_tag("p", record)
    name = f"<p>{_name(record.name)}</p>"
    return (
        f'<style>{_part("page.css")}</style><div class="dp">{name}{verdict}{_details(record)}</div>'
    )


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="pytest-dp">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>\n{_part('page.css')}</style>\n</head>\n"
        f'<body class="dp">\n{body}\n<script>\n{_part("page.js")}</script>\n</body>\n</html>\n'
    )


@cache
def _part(name: str) -> str:
    return files("pytest_dp.report").joinpath(name).read_text(encoding="utf-8")


def _table(claims: Sequence[Record]) -> str:
    statuses = [status for status in STATUSES if any(claim.status == status for claim in claims)]
    options = "".join(
        f'<option value="{status}">{STATUSES[status].heading}</option>' for status in statuses
    )
    above = [f'<th scope="col">{name}</th>' for name in ("verdict", "claim")]
    above += [f'<th scope="col" class="{_column(name)}">{name}</th>' for name in HEADS]
    rows = (_row(number, record) for number, record in enumerate(claims, start=1))
    return (
        '<h2 id="claims">Claims</h2>\n<div class="dp-controls" role="search" hidden>'
        '<label>Filter <input type="search" autocomplete="off"></label> '
        f'<label>Verdict <select><option value="">all</option>{options}</select></label> '
        "<output></output></div>\n"
        f'<table aria-labelledby="claims">\n<thead><tr>{"".join(above)}</tr></thead>\n'
        f"<tbody>\n{''.join(rows)}</tbody>\n</table>"
    )


def _column(head: str) -> str:
    """Return the class of a column: figures stand at its right."""
    return "dp-number" if head in ("runs", "time") else "dp-text"


def _row(number: int, record: Record) -> str:
    values = (record.claimed, record.resolution, record.samples, record.seconds)
    figures = "".join(
        f'<td class="{_column(head)}" data-label="{head}" data-value="{Decimal(value or 0):.6g}">'
        f"{_text(cell)}</td>"
        for head, value, cell in zip(HEADS, values, row_cells(record), strict=True)
    )
    return (
        f'<tr data-status="{record.status}" data-claim="claim-{number}">'
        f'<td class="dp-verdict dp-{_style(record)}" data-value="{number}">'
        f"{STATUSES[record.status].sign} {_text(verdict(record))}</td>"
        f'<th scope="row"><a href="#claim-{number}">{_name(record.name)}</a><br>'
        f'<span class="dp-soft">{_text(record.place)}</span></th>{figures}</tr>\n'
    )


def _verdict(record: Record) -> str:
    said = ": ".join(filter(None, (verdict(record), short_finding(record))))
    return f"{STATUSES[record.status].sign} {said}"


def _verdict_tag(tag: str, record: Record) -> str:
    return f'<{tag} class="dp-verdict dp-{_style(record)}">{_text(_verdict(record))}</{tag}>'


def _style(record: Record) -> str:
    return STATUSES["inconclusive" if record.strength in POOR else record.status].style


def _details_of_claim(number: int, record: Record, linked: Callable[[str], str]) -> str:
    """Return all that is known of a claim; open at once if something is wrong with it."""
    passed = record.status in ("no violation", "unchanged") and record.strength not in POOR
    is_open = "" if passed and not record.beyond else " open"
    return (
        f"<details{is_open}><summary>"
        f"{_verdict_tag('span', record)} {_name(record.name)}</summary>\n"
        f'<div id="claim-{number}"><p class="dp-soft">{_text(record.place)}</p>{_details(record)}'
        f"{_pairs(record, linked)}</div></details>\n"
    )


def _pairs(record: Record, linked: Callable[[str], str]) -> str:
    """Return links to the files that have counterexamples as tests."""
    return "".join(
        f'<p>The pair as a test: <a href="{_text(linked(told.pair_file))}">'
        f"{_name(told.pair_file)}</a></p>"
        for told in record.all
        if told.pair_file
    )


def _details(record: Record) -> str:
    begun = " ".join(record.details.split()).startswith(record.headline)
    parts = [] if begun else [f"<p>{_text(record.headline)}</p>"]
    if record.details:
        label = f"{STATUSES[record.status].heading}: {record.name}"
        attributes = f'tabindex="0" role="region" aria-label="{_text(label)}"'
        parts.append(f"<pre {attributes}>{_text(record.details)}</pre>")
    if record.beyond is not None:
        parts.append(_details(record.beyond))
    try:
        drawn = drawings(record)
    except Exception as error:  # of numbers that no axis holds; the rest of the page stands
        drawn = []
        parts.append(f"<p>Its pictures could not be drawn: {_text(repr(error))}</p>")
    if drawn:
        parts.append(f'<div class="dp-pictures">{"".join(map(_figure, drawn))}</div>')
    if record.status == "beyond":
        return "\n".join(parts)
    known = facts(record)
    if record.reproduce and record.status != "violated":  # a violation's message ends with it
        known.append(("reproduce", record.reproduce))
    listed = "".join(f"<dt>{_text(name)}</dt><dd>{_text(said)}</dd>" for name, said in known)
    return "\n".join([*parts, f"<dl>{listed}</dl>" if listed else ""])


def _figure(drawing: Drawing) -> str:
    return (
        f"<figure><h3>{_text(drawing.heading)}</h3>{drawing.svg}"
        f"<figcaption>{_text(drawing.caption)}</figcaption></figure>"
    )


def _name(name: str) -> str:
    """Return the name of a test, which narrow screens may break where its parts end."""
    parts = re.sub(r"([_/.:[-])(?=[^_:])", r"\1<wbr>", _text(name))
    return f"<code>{parts}</code>"


def _text(said: str) -> str:
    return escape(_UNPRINTABLE.sub("", said))
