"""Audits of mechanisms that lose more than they claim, and look private when they are traced.

A pass that is graded ``exact`` or ``aligned`` is wrong, unless the leak is so seldom that the line
of the report says that it may go unseen. Exit status 1 if one is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import Any

from benchmarks.common import progress, table
from benchmarks.unlike_traces import MEMBERS, Member, Patched
from pytest_dp import audit
from pytest_dp.basics.errors import PytestDPError
from pytest_dp.results.result import Result


def audited(member: Member, max_samples: int) -> Result | None:
    """The audit of a member; None if it is refused."""
    mechanism: Any = member.make()
    with contextlib.ExitStack() as stack:
        if isinstance(mechanism, Patched):
            original = getattr(mechanism.owner, mechanism.name)
            setattr(mechanism.owner, mechanism.name, mechanism.other)
            stack.callback(setattr, mechanism.owner, mechanism.name, original)
            mechanism = mechanism.mechanism
        try:
            return audit(
                mechanism,
                eps=1.0,
                pairs=[(0, 1)],
                seed=1,
                n_jobs=1,
                max_samples=max_samples,
                max_seconds=5,
            )
        except PytestDPError:
            return None


def is_wrong(member: Member, result: Result | None) -> bool:
    """Whether a pass rests on a known loss, and what goes wrong is not too seldom to see."""
    if result is None or result.strength not in ("exact", "aligned"):
        return False
    assert result.estimate is not None
    said = result.estimate.unseen if result.estimate.runs < 10_000 else 0.0
    return not member.often < said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of members")
    parser.add_argument("--max-samples", type=int, nargs="+", default=[70, 2_000])
    options = parser.parse_args()
    wrong, rows = [], []
    members = [member for member in MEMBERS if options.only in member.name]
    for max_samples in options.max_samples:
        graded = seldom = 0
        for number, member in enumerate(members):
            if number % 50 == 0:
                progress(f"{number} of {len(members)}")
            result = audited(member, max_samples)
            if result is not None and result.strength in ("exact", "aligned"):
                graded += 1
                seldom += not is_wrong(member, result)
            if is_wrong(member, result):
                assert result is not None
                wrong.append(f"{member.name} in {max_samples}: {result}")
                progress(wrong[-1])
        rows.append([max_samples, len(members), graded, seldom])
    header = ["samples at most", "members", "exact or aligned", "too seldom to be seen"]
    print(table(header, rows))
    print("\n".join(wrong) or "none is wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
