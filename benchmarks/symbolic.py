"""What symbolic runs propose: gates opened, arguments of the sparse vector.

And how far the answer moves on the pairs that an audit screens without them: worst inputs.

A gate counts as open on a pair if the leak shows there: with the same noise, the mechanism and its
twin answer differently on D or on D'. Looked at are the pairs of one source alone, in their order.

Run with ``python -m benchmarks.symbolic [gates] [arguments] [worst] [overhead] [--only NAME ...]``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from benchmarks import mechanisms
from benchmarks.common import Twins, cpu_seconds, progress, table
from benchmarks.gated import GATED
from benchmarks.gated_symbolic import SYMBOLIC
from benchmarks.gated_unseen import UNSEEN
from benchmarks.worst_inputs import WORST
from pytest_dp import audit, between
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.settings import Settings
from pytest_dp.pairs import make_pair_source, resolve_promise
from pytest_dp.pairs.pair_strategies import neighbours
from pytest_dp.pairs.sources import Pair, PairSource
from pytest_dp.proposers import widen_source
from pytest_dp.proposers.by_movement import Clock
from pytest_dp.proposers.interesting_values import constants_of
from pytest_dp.proposers.proposing import LEAST_NOISE, BySymbols
from pytest_dp.running.calling import Call, prepare

OLD = ("guided",)
MOST = 200
"""Pairs that are looked at; no audit has samples for more."""


def prepared(mechanism: Callable[..., Any], claim: dict[str, Any]) -> tuple[Any, Call, PairSource]:
    """A claim with its inputs looked up, the call, and the pairs that the claim gives."""
    whole = expand({"eps": 1.0, **claim})[0]
    call = prepare(mechanism, whole.arguments)
    whole = replace(whole, promise=resolve_promise(whole.promise))
    constants = constants_of(call.mechanism, call.params)
    return whole, call, make_pair_source(whole, 1, "inputs", constants=constants)


def explored(
    mechanism: Callable[..., Any], claim: dict[str, Any], start: Callable[[Pair], bool] = bool
) -> Iterator[Pair]:
    """What symbolic runs find from some of a claim's pairs on."""
    whole, call, source = prepared(mechanism, claim)
    pairs, relation = list(filter(start, source.given)), whole.promise.relation
    return BySymbols(call, pairs, relation, source.generated, Clock(60.0)).propose()


def proposed(mechanism: Callable[..., Any], claim: dict[str, Any], *search: str) -> Iterator[Pair]:
    """What an audit would look at: with symbolic runs alone, without the pairs of the claim."""
    whole, call, source = prepared(mechanism, claim)
    settings = Settings(search=search, seed=1, max_seconds=3600)
    source = widen_source(source, whole.promise, call, settings)
    if search != ("symbolic",):
        yield from source.given
    for _ in range(MOST):
        pair = source.propose_pair()
        if pair is None:
            return
        yield pair


def by_hypothesis(claim: dict[str, Any]) -> Iterator[Pair]:
    """Pairs of neighbours as Hypothesis draws them."""
    whole = expand({"eps": 1.0, **claim})[0]
    strategy = neighbours(whole.promise.inputs, whole.promise.relation, "inputs")
    strategy = strategy.with_params(whole.arguments.drawn)
    return (drawn.value for drawn in strategy.draw_values(1) if drawn is not None)


def opens(twins: Twins, pairs: Iterable[Pair]) -> bool:
    """Whether the leak shows on any of the pairs."""
    wrong, right = twins.make(True), twins.make(False)
    return any(
        _answer(wrong, data, pair, seed) != _answer(right, data, pair, seed)
        for pair in pairs
        for data in (pair.d1, pair.d2)
        for seed in (0, 1)
    )


def _answer(mechanism: Callable[..., Any], data: Any, pair: Pair, seed: int) -> str:
    try:
        return repr(mechanism(data, rng=np.random.default_rng(seed), **pair.params))
    except Exception as error:  # an answer like any other
        return repr(error)


def gates(only: list[str]) -> None:
    rows, totals = [], np.zeros(5, int)
    for suite in (GATED, UNSEEN, SYMBOLIC):
        for twins in suite:
            if only and twins.name not in only:
                continue
            claim, before = twins.claim(), cpu_seconds()
            by_symbols = opens(twins, proposed(twins.make(True), claim, "symbolic"))
            seconds = cpu_seconds() - before
            everything = opens(twins, proposed(twins.make(True), claim, "symbolic", *OLD))
            old = opens(twins, proposed(twins.make(True), claim, *OLD))
            drawn = [False, False]
            if hasattr(twins.inputs, "map"):
                pairs = list(islice(by_hypothesis(claim), 2_000))
                drawn = [opens(twins, pairs[:200]), opens(twins, pairs)]
            found = [by_symbols, old, *drawn, everything]
            totals += found
            shown = ["yes" if each else "" for each in found]
            rows.append([twins.name, *shown, f"{seconds:.1f}"])
            progress(str(rows[-1]))
    rows.append(["all", *totals.tolist(), ""])
    header = ["gate", "symbolic", "guided", "Hypothesis 200", "2,000", "all", "CPU s"]
    print(table(header, rows))


SPARSE = {1: mechanisms.svt1, 3: mechanisms.svt3, 4: mechanisms.svt4}
SPARSE |= {5: mechanisms.svt5, 6: mechanisms.svt6}
FOUR = (
    ("one above", [1] * 10, [2] + [1] * 9),
    ("one above, rest below", [1] * 10, [2] + [0] * 9),
    ("half half", [1] * 10, [0] * 5 + [2] * 5),
    ("all above", [1] * 10, [2] * 10),
)


def _is_far_off(pair: Pair) -> bool:
    """Whether no answer parts from the threshold, and the noise is not the least."""
    return pair.params["threshold"] > 3 and pair.params.get("c", 5) > 1


def arguments(only: list[str]) -> None:
    """On each of four patterns alone: the threshold, the count, and how many answers part."""
    rows = []
    for number, mechanism in SPARSE.items():
        for name, d1, d2 in FOUR:
            params = {"eps": 1.0, "threshold": between(0, 10)}
            params |= {"c": between(1, 5)} if number < 5 else {}
            claim = {"pairs": [(d1, d2)], "neighbors": "all_queries", "params": params}
            next(explored(mechanism, claim), None)  # what is imported once
            found = explored(mechanism, claim, _is_far_off)
            before = time.process_time()
            last = next((pair for pair in found if pair.origin != LEAST_NOISE), None)
            seconds = time.process_time() - before
            shown = dict(last.params) if last else {}
            rows.append([f"SVT{number}", name, shown, f"{seconds:.3f}"])
    print(table(["mechanism", "pattern", "arguments", "CPU s"], rows))


def worst(only: list[str]) -> None:
    """How far the answer moves on the pairs that an audit screens by default, without z3."""
    rows, count = [], 0
    for case in WORST:
        if only and case.name not in only:
            continue
        claim = {"inputs": case.inputs, "neighbors": case.neighbors}
        started = cpu_seconds()
        whole, call, source = prepared(case.mechanism(), claim)
        drawn = max(case.moves(*pair.inputs) for pair in source.given)
        source = widen_source(source, whole.promise, call, Settings(search=OLD, seed=1))
        pairs = source.screener.screen().pairs
        seconds = cpu_seconds() - started
        best = max([drawn, *(case.moves(*pair.inputs) for pair in pairs)])
        count += best >= case.farthest * (1 - 1e-6)
        rows.append([case.name, case.farthest, f"{drawn:g}", f"{best:g}", f"{seconds:.1f}"])
        progress(str(rows[-1]))
    header = ["answer", "farthest", "by corner cases", "by screening", "CPU s"]
    print(table(header, rows), f"\n{count} of {len(rows)} as far as the answer may move")


def overhead(only: list[str]) -> None:
    """Samples of audits of correct mechanisms, with and without symbolic runs."""
    rows, alarms = [], 0
    for twins in (*GATED, *UNSEEN, *SYMBOLIC):
        if only and twins.name not in only:
            continue
        samples = []
        for search in (OLD, ("symbolic", *OLD)):
            settings = {"seed": 1, "n_jobs": 1, "max_seconds": 60, "search": search}
            result = audit(twins.make(False), **twins.claim(), **settings)
            samples.append(result.samples)
            alarms += result.violated or result.beyond is not None
        rows.append([twins.name, *samples, f"{samples[1] / samples[0] - 1:+.1%}"])
        progress(str(rows[-1]))
    print(table(["twin", "samples without", "with", "more"], rows), f"\n{alarms} false alarms")


PARTS = {"gates": gates, "arguments": arguments, "worst": worst, "overhead": overhead}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["gates", "arguments", "worst"])
    parser.add_argument("--only", nargs="+", default=[])
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options.only)


if __name__ == "__main__":
    main()
