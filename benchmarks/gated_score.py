"""How many mechanisms that leak behind a gate are found, and how many of their twins are red.

Found beyond the examples counts as found, in a column of its own; of twins it is a false alarm.

Run with ``python -m benchmarks.gated_score [--seeds 5] [--twin-seeds 20] [--only sum ...]``.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.common import progress, red, table
from benchmarks.gated import GATED
from benchmarks.gated_symbolic import SYMBOLIC
from benchmarks.gated_unseen import UNSEEN

SECONDS = 30
ENOUGH = 14


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--twin-seeds", type=int, default=20)
    parser.add_argument("--only", nargs="+")
    options = parser.parse_args()
    rows, found, alarms = [], 0, 0
    for suite in (GATED, UNSEEN, SYMBOLIC):
        for gated in suite:
            if options.only and gated.name not in options.only:
                continue
            times, beyond, cost = red(gated, True, options.seeds, SECONDS)
            *alarmed, cost_of_twins = red(gated, False, options.twin_seeds, SECONDS)
            found += suite is GATED and times + beyond == options.seeds
            alarms += sum(alarmed)
            shown = f"{times}/{options.seeds}", f"{beyond}/{options.seeds}", f"{cost:.1f}"
            of_twins = f"{sum(alarmed)}/{options.twin_seeds}", f"{cost_of_twins:.1f}"
            rows.append([gated.name, "" if suite is GATED else "yes", *shown, *of_twins])
            progress(f"{rows[-1]}")
    print(table(["gate", "unseen", "red", "beyond", "CPU s", "twin told", "CPU s"], rows))
    sys.exit(alarms > 0 or (not options.only and found < ENOUGH))


if __name__ == "__main__":
    main()
