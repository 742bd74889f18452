"""How often a mechanism that attains its claim is rejected, for eight kinds of claim, by betting.

At most alpha is allowed. 1,000 audits for each kind and for coupled and independent draws, 16,000
in all, take about an hour of processor time, so what is done is kept in a file, block by block, and
not done again. A test that never rejects would pass: a tenth as many audits are of mechanisms that
break the claim. They also show whether what is reported of them exceeds the truth.

Run with ``python -m benchmarks.type_one_kinds [--audits 1000] [--kinds NAME ...] [--log FILE]``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from scipy.stats import binom

from benchmarks.attaining import KINDS
from benchmarks.common import progress, table
from pytest_dp import Sequential, audit

ALPHA, SAMPLES = 0.01, 2_000
BLOCK, ONE_IN = 50, 10
"""Audits at the claim in a block; for so many of them, one beyond."""
TOO_RARE = 1e-3
"""Probability of so many false alarms or more from which they are too many."""
ROUNDING = 1 + 1e-9
COUNTED = "audits", "rejected", "above", "caught", "too high"


def trial(name: str, law: Any, coupled: bool, seed: int) -> tuple[bool, float]:
    """Whether one audit rejects, and its lower bound."""
    kind = KINDS[name]
    result = audit(
        kind.mechanism,
        **kind.claim,
        pairs=[(1, 0)],
        params={"law": [law]},
        vectorized="size",
        alpha=ALPHA,
        max_samples=SAMPLES,
        max_seconds=600,
        margin=None,
        method=Sequential(coupled=coupled),
        seed=seed,
        n_jobs=1,
    )
    return result.violated, result.lower


def block(name: str, coupled: bool, first: int) -> dict[str, Any]:
    """What a block of audits counts, the first of which has that seed."""
    kind, seeds = KINDS[name], range(first, first + BLOCK)
    truth = kind.true(kind.above) * ROUNDING
    at = [trial(name, kind.at, coupled, seed) for seed in seeds]
    above = [trial(name, kind.above, coupled, seed) for seed in seeds[::ONE_IN]]
    return {
        "kind": name,
        "coupled": coupled,
        "first": first,
        "audits": len(at),
        "rejected": sum(violated for violated, _ in at),
        "above": len(above),
        "caught": sum(violated for violated, _ in above),
        "too high": sum(lower > truth for _, lower in above),
    }


def known(log: Path | None) -> list[dict[str, Any]]:
    """Blocks that were done before."""
    if log is None or not log.exists():
        return []
    return [json.loads(line) for line in log.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000, help="of each kind, coupled and not")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--log", type=Path, help="where blocks are kept, and taken from")
    options = parser.parse_args()

    blocks = known(options.log)
    done = {(one["kind"], one["coupled"], one["first"]) for one in blocks}
    cells = [(name, coupled) for name in options.kinds for coupled in (True, False)]
    for first in range(0, options.audits, BLOCK):
        for name, coupled in cells:
            if (name, coupled, first) in done:
                continue
            blocks.append(block(name, coupled, first))
            progress(f"{blocks[-1]}")
            if options.log is not None:
                with options.log.open("a") as log:
                    log.write(json.dumps(blocks[-1]) + "\n")

    rows, kept = [], True
    in_all = dict.fromkeys(COUNTED, 0)
    for name, coupled in cells:
        own = [one for one in blocks if (one["kind"], one["coupled"]) == (name, coupled)]
        sums = {what: sum(one[what] for one in own) for what in COUNTED}
        in_all = {what: in_all[what] + sums[what] for what in COUNTED}
        rows.append([name, "coupled" if coupled else "independent", *row(sums)])
        kept &= chance(sums) > TOO_RARE
    header = ["kind of claim", "draws", "rejected", "chance of as many", "rejected beyond"]
    print(table([*header, "bounds above the truth"], [*rows, ["all", "", *row(in_all)]]))
    print(
        f"\nAlpha = {ALPHA}, at most {SAMPLES:,} outputs an audit. The chance is that of a test "
        "which rejects with probability alpha to do so as often or more."
    )
    sys.exit(not kept or chance(in_all) < TOO_RARE)


def chance(sums: dict[str, int]) -> float:
    """Of as many false alarms, or more, if each has probability alpha."""
    return float(binom.sf(sums["rejected"] - 1, sums["audits"], ALPHA))


def row(sums: dict[str, int]) -> list[str]:
    return [
        f"{sums['rejected']} of {sums['audits']:,}",
        f"{chance(sums):.2g}",
        f"{sums['caught']} of {sums['above']:,}",
        f"{sums['too high']} of {sums['above']:,}",
    ]


if __name__ == "__main__":
    main()
