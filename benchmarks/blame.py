"""Which lines are blamed for violations, beside the lines that are wrong.

Four kinds of sets: the regressions of the example project, the wrong mechanisms of the corpus,
functions with a planted bug (`benchmarks.leaky`), also of the kinds that public reports tell of,
and mechanisms that do what they are written for under a claim of less, of which no line is to be
blamed. What is said is printed, as whether it is true is for a person to judge.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from benchmarks import cases, mechanisms
from benchmarks.common import table
from benchmarks.leaky import fresh, public_bugs, right, statistics, unseen
from pytest_dp import audit
from pytest_dp.results.outcome import Blame

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "example_project"
NEAR = 2
"""Lines between the blamed line and the wrong one, at most."""
VISITS = [("u", 1), ("u", 2), ("v", 3)]
SURVEY = {"pairs": [(0, 3)]}
SIZED = {"pairs": [([3, 1, 4, 1], [3, 1, 4])]}

PLANTED: dict[str, dict[str, Any]] = {
    "clipped_mean": {"pairs": [([20, 30, 900], [20, 30, 40])]},
    "histogram_of_ages": {"eps": 0.5, "pairs": [([20, 30, 70], [20, 30])]},
    "noisy_sum_of_class": {"delta": 1e-6, "pairs": [([1, 1, 1], [1, 1])]},
    "means_by_group": {"pairs": [([("a", 3), ("b", 9)], [("a", 3)])]},
    "noise_before_loop": {"pairs": [(["home", "shop"], ["shop", "help"])]},
    "private_median": {"pairs": [([1, 2, 8, 9], [1, 2, 8])]},
    "seeded_in_class": {"pairs": [([4, 5], [4, 5, 9])]},
    "unary_survey": SURVEY,
    "monitor": {"pairs": [([4, 6, 3], [5, 5, 4])]},
    "one_sided_count": {"pairs": [([1, 1, 0], [1, 0])]},
    "rounded_mean": {"pairs": [([3, 4, 2, 5, 1, 0, 2, 3], [3, 4, 2, 5, 1, 0, 2, 5])]},
    "scaled_by_data": {"pairs": [([3, 9, 40], [3, 9])]},
    "small_groups": {"pairs": [([5, 6, 7], [5, 6])]},
    "visits_by_user": {"pairs": [([*VISITS, *[("w", s) for s in range(20)]], VISITS)]},
    "quantile_noise": {"pairs": [([1, 0, 1], [1, 0])]},
    "averaged": {"pairs": [([3, 4, 5], [3, 4])]},
    "one_noise_for_all": {"pairs": [([4, 5, 6], [4, 6, 6])]},
    "only_where_some": {"pairs": [(["fever", "rash"], ["fever"])]},
    "clipped_gradient": {"eps": None, "rho": 0.5, "pairs": [([[9, 0, 0], [1, 0, 0]], [[1, 0, 0]])]},
    "tree_of_sums": {"pairs": [([1, 0, 1, 1], [1, 1, 1, 1])]},
    "random_choice": {"pairs": [("never", "often")]},
}
"""Claims of the functions in `benchmarks.leaky.statistics`; eps = 1 unless said otherwise."""

BY_CASE = {
    "NoisyHist2": "rng.laplace(scale=eps, size=len(counts))",
    "NoisyMax3": "np.max(np.asarray(answers) + rng.laplace",
    "NoisyMax4": "np.max(np.asarray(answers) + rng.exponential",
    "SVT3": "out.append(noisy)",
    "SVT4": "scale=4 / (3 * eps)",
    "SVT5": "[answer >= noisy_threshold",
    "SVT6": "[answer + rng.laplace(scale=2 / eps) >= noisy_threshold",
    "SVT34Parallel": "out.append(noisy)|scale=4 / (3 * eps)",
    "PrefixSum": "np.cumsum(",
    "TruncatedGeometric": "k = math.ceil(",
}
"""What is wrong in the mechanisms of the corpus; with `|`, any of several."""

CLAIM_ONLY: dict[str, tuple[Any, dict[str, Any]]] = {
    name: (getattr(mechanisms, name), {"params": {"eps": 1.0, **more}, **claim})
    for name, claim, more in (
        ("laplace", {"pairs": [(0.0, 1.0)]}, {}),
        ("laplace_parallel", {"pairs": [(0.0, 1.0)]}, {}),
        ("truncated_geometric", {"pairs": [(2, 3)]}, {}),
        ("histogram", {"pairs": [([1, 2, 3], [1, 3, 3])]}, {}),
        ("prefix_sum", {"pairs": [([1, 2, 3], [2, 2, 3])]}, {}),
        ("noisy_max", {"pairs": [([1, 1, 1, 1], [2, 0, 0, 0])]}, {}),
        ("noisy_max_exponential", {"pairs": [([1, 1, 1, 1], [2, 0, 0, 0])]}, {}),
        ("svt1", {"pairs": [([1] * 5, [0] * 5)]}, {"threshold": 0.5}),
        ("svt2", {"pairs": [([1] * 5, [0] * 5)]}, {"threshold": 0.5}),
        ("numerical_svt", {"pairs": [([1] * 5, [0] * 5)]}, {"threshold": 0.5}),
        ("randomized_response", {"pairs": [(0, 1)]}, {}),
        ("noisy_count", SIZED, {}),
        ("geometric_count", SIZED, {}),
        ("kary_response", {"pairs": [(0, 3)]}, {}),
        ("unary_encoding", {"pairs": [(0, 3)]}, {}),
    )
} | {
    "by_constant": (right.by_constant, SIZED),
    "by_two_constants": (right.by_two_constants, {"pairs": [([3, 5, 1], [3, 5, 1, 5])]}),
    "by_default": (right.by_default, SIZED),
    "by_attribute": (right.by_attribute, SIZED),
    "by_local_name": (right.by_local_name, {"pairs": [(0, 1)]}),
}
"""Claimed at 0.3 (0.1 for sparse vectors); they are written for eps = 1."""
UNNAMED: dict[str, tuple[Any, dict[str, Any]]] = {
    "unnamed_count": (right.unnamed_count, SIZED),
    "unnamed_histogram": (right.unnamed_histogram, SIZED),
    "unnamed_response": (right.unnamed_response, {"pairs": [(0, 1)]}),
}
"""The same where the code does not say for which eps it is written."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was said of one mechanism.

    Attributes
    ----------
    name : str
    lines : list of (str, int)
        Names of files and lines that are wrong.
    blame : list of Blame
    violated : bool
    seconds : float
    """

    name: str
    lines: list[tuple[str, int]]
    blame: list[Blame] = field(default_factory=list)
    violated: bool = True

    def near(self, one: Blame) -> bool:
        """Whether a blamed line is as near as it should be."""
        name = Path(one.file).name
        return any(name == file and abs(line - one.line) <= NEAR for file, line in self.lines)

    @property
    def said(self) -> str:
        """``hit``, ``second`` if only a further line is near, ``miss`` or ``none``."""
        if not self.violated:
            return "not violated"
        if not self.blame:
            return "none"
        hits = [self.near(one) for one in self.blame]
        return "hit" if hits[0] else "second" if any(hits) else "miss"


def planted(module: Any, claims: dict[str, dict[str, Any]]) -> Iterator[Outcome]:
    """The functions of a module with planted bugs."""
    files = list((ROOT / "benchmarks/leaky").glob("*.py"))
    for name, keywords in claims.items():
        lines = [
            (file.name, number)
            for file in files
            for number, line in enumerate(file.read_text().splitlines(), 1)
            if line.endswith(f"# planted: {name}")
        ]
        mechanism = getattr(module, name)
        yield _outcome(name, lines, mechanism, {"eps": 1.0, **keywords})


def _outcome(
    name: str, lines: list[tuple[str, int]], mechanism: Any, keywords: dict[str, Any]
) -> Outcome:
    keywords = {key: value for key, value in keywords.items() if value is not None}
    takes = inspect.signature(mechanism).parameters
    given = {key: keywords[key] for key in ("eps", "delta", "rho", "mu") if key in keywords}
    own = {key: value for key, value in given.items() if key in takes}
    keywords["params"] = own | keywords.get("params", {})
    result = audit(mechanism, **keywords, seed=3, n_jobs=1, max_seconds=60)
    return Outcome(name, lines, list(result.blame), result.violated)


def corpus() -> Iterator[Outcome]:
    """The wrong mechanisms of the corpus."""
    source = Path(mechanisms.__file__).read_text().splitlines()
    for case in cases.CORPUS:
        if case.name not in BY_CASE:
            continue
        eps = next(eps for eps in (1.0, 0.1) if case.violates(eps))
        wrong = BY_CASE[case.name].split("|")
        lines = [
            ("mechanisms.py", number)
            for number, line in enumerate(source, 1)
            if any(text in line for text in wrong)
        ]
        result = audit(case.mechanism, **case.keywords(eps), seed=3, n_jobs=1, max_seconds=60)
        yield Outcome(case.name, lines, list(result.blame), result.violated)


def claim_only(chosen: dict[str, tuple[Any, dict[str, Any]]]) -> Iterator[Outcome]:
    """Mechanisms that do what they are written for, under a claim of less."""
    for name, (mechanism, keywords) in chosen.items():
        eps = 0.1 if "svt" in name or name == "truncated_geometric" else 0.3
        result = audit(mechanism, eps=eps, **keywords, seed=3, n_jobs=1, max_seconds=60)
        yield Outcome(name, [], list(result.blame), result.violated)


def example() -> Iterator[Outcome]:
    """The regressions of the example project."""
    for patch in sorted((EXAMPLE / "regressions").glob("*.patch")):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "example"
            shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
            environment = {**os.environ, "GIT_CEILING_DIRECTORIES": folder}
            environment["PYTHONPATH"] = str(ROOT)
            subprocess.run(["git", "apply", patch], cwd=copy, env=environment, check=True)
            file, lines = changed(EXAMPLE, copy)
            report = Path(folder) / "report.json"
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
            command += [f"--dp-report={report}", "--dp-claims=off"]
            subprocess.run(command, cwd=copy, env=environment, check=False, capture_output=True)
            claims = json.loads(report.read_text())["claims"]
            wrong = [claim for claim in claims if claim["status"] == "violated"]
            blame = [Blame(**one) for claim in wrong for one in claim["blame"]]
            named = [(Path(file).name, line) for line in lines]
            yield Outcome(patch.stem, named, blame, bool(wrong))


def changed(before: Path, after: Path) -> tuple[str, list[int]]:
    """The file that differs, and the lines of it that are new, or stand where some are gone."""
    for file in sorted(after.rglob("*.py")):
        old = (before / file.relative_to(after)).read_text().splitlines()
        new = file.read_text().splitlines()
        if old == new:
            continue
        lines: set[int] = set()
        for kind, _, _, start, stop in SequenceMatcher(None, old, new, False).get_opcodes():
            if kind != "equal":
                lines |= set(range(start + 1, max(stop, start + 1) + 1))
        return str(file.relative_to(after)), sorted(lines)
    raise ValueError(f"{after} is as {before}")


SETS = {
    "example": example,
    "corpus": corpus,
    "planted": lambda: planted(statistics, PLANTED),
    "fresh": lambda: planted(fresh, fresh.CLAIMS),
    "unseen": lambda: planted(unseen, unseen.CLAIMS),
    "public bugs": lambda: planted(public_bugs, public_bugs.CLAIMS),
    "claim only": lambda: claim_only(CLAIM_ONLY),
    "claim only, no eps in the code": lambda: claim_only(UNNAMED),
}


def main() -> None:
    """Print what is said, and a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "sets", nargs="*", metavar="set", help=f"of {', '.join(SETS)}; by default, all"
    )
    parser.add_argument("--only", default="", help="names that contain this")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.sets or SETS:
        outcomes = []
        for outcome in SETS[name]():
            if arguments.only not in outcome.name:
                continue
            outcomes.append(outcome)
            print(f"{name}: {outcome.name}: {outcome.said} {outcome.lines}", file=sys.stderr)
            for one in outcome.blame:
                told = f"    {one.place} ({one.kind}): {one.message}"
                print(told, file=sys.stderr, flush=True)
        counts = [
            sum(o.said == said for o in outcomes) for said in ("hit", "second", "miss", "none")
        ]
        rows.append([name, str(len(outcomes)), *map(str, counts)])
    print(
        table(
            ["set", "mechanisms", "within 2 lines", "a further line is", "elsewhere", "none"], rows
        )
    )


if __name__ == "__main__":
    main()
