"""Stand-ins and their formulas against plain Python, and what runs on them propose."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace
from itertools import combinations, islice, product

import numpy as np
import pandas as pd
import pytest

from pytest_dp import audit, between, queries
from pytest_dp.basics.errors import ClaimError
from pytest_dp.claiming.claim import expand
from pytest_dp.data.relations import Pair
from pytest_dp.pairs import make_pair_source, resolve_promise
from pytest_dp.running.calling import prepare

z3 = pytest.importorskip("z3")


from pytest_dp.proposers.by_movement import Clock  # noqa: E402
from pytest_dp.proposers.proposing import BySymbols, Questions  # noqa: E402
from pytest_dp.proposers.staging import Variables, literal, number_in  # noqa: E402
from pytest_dp.proposers.stand_ins import Truth, arrays_of_stand_ins  # noqa: E402
from pytest_dp.proposers.trace import Trace  # noqa: E402

pytestmark = [pytest.mark.usefixtures("few_pairs"), pytest.mark.spot(5)]


def formula_of(value):
    return value.condition if isinstance(value, Truth) else value.term


def holds_elsewhere(function, start, others):
    """Whether formulas of a run on one input say what the function makes of others.

    Of those on which it goes the same way; returns how many these are.
    """
    made, trace = Variables(), Trace()
    variables = [made.new(value) for value in start]
    with arrays_of_stand_ins().in_place():
        result = function(*(variable.stand_in(trace) for variable in variables))
    formula, same_way = formula_of(result), 0
    path = [branch.taken_condition for branch in trace.branches] + [fact for _, fact in trace.facts]
    for other in others:
        put = [(v.formula, literal(value)) for v, value in zip(variables, other, strict=True)]

        def at(term, put=put):
            return z3.simplify(z3.substitute(term, *put))

        if all(z3.is_true(at(condition)) for condition in path):
            same_way += 1
            expected = function(*other)
            expected = expected.item() if isinstance(expected, np.generic) else expected
            expected = bool(expected) if z3.is_bool(formula) else expected
            assert z3.is_true(z3.simplify(at(formula) == literal(expected))), other
    return same_way


QUARTERS = [n / 4 for n in range(-12, 13)]
ARITHMETIC = {
    "product": lambda x, y: x * y + x**2,
    "ratio": lambda x, y: (x + 0.5 * y) / 4,
    "floor": lambda x, y: (x - 7 * y) // 3,
    "remainder": lambda x, y: (x - 7 * y) % 5,
    "absolute": lambda x, y: abs(x - y),
    "largest": lambda x, y: max(x, y, 0) - min(x, 2),
    "compared": lambda x, y: 2 * x >= y + 1,
    "branches": lambda x, y: x if x > 2 else y - x,
}


@pytest.mark.parametrize(
    ("numbers", "start"),
    [(range(-7, 8), (3, -2)), (QUARTERS, (2.25, -1.5))],
    ids=["whole", "floats"],
)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name, numbers, start):
    assert holds_elsewhere(ARITHMETIC[name], start, list(product(numbers, repeat=2))) > 10


def proposed(mechanism, limit=20, start=bool, **claim):
    claim = expand({"eps": 1.0, **claim})[0]
    call = prepare(mechanism, claim.arguments)
    promise = resolve_promise(claim.promise)
    source = make_pair_source(replace(claim, promise=promise), 0, "inputs")
    pairs = list(filter(start, source.given))
    search = BySymbols(call, pairs, promise.relation, source.generated, Clock(60.0))
    return list(islice(search.propose(), limit)), search


def gated(is_open):
    def mechanism(data, rng):
        return len(data) + rng.laplace(scale=0.3 if is_open(data) else 1.0)

    return mechanism


ROWS = [[(3, 40), (99, 0)]]
GATES = {
    "fields": (lambda data: any(5 * a - 3 * b == 77 for a, b in data), ROWS),
    "numpy": (lambda data: np.dot(data, [3, 1, 2]) == 700, queries(3)),
}


@pytest.mark.slow
@pytest.mark.spot(2)
@pytest.mark.parametrize("name", GATES)
def test_pairs_are_found_behind_a_gate_and_beside_it(name):
    is_open, inputs = GATES[name]
    claim = {"inputs": inputs, "neighbors": "all_queries" if name == "numpy" else "add_remove_one"}
    pairs, search = proposed(gated(is_open), **claim)
    sides = {(bool(is_open(pair.d1)), bool(is_open(pair.d2))) for pair in pairs}
    assert (True, True) in sides
    assert len(sides) > 1
    assert all(pair.origin.startswith("symbolic: ") for pair in pairs)
    assert any("test_symbolic.py:" in pair.origin for pair in pairs)
    assert search.asked < 256


def test_its_clock_runs_while_it_searches():
    clock, mechanism = Clock(60.0), gated(lambda data: data[0] > 7)
    call = prepare(mechanism, expand({"eps": 1.0, "pairs": [([3], [4])]})[0].arguments)
    search = BySymbols(call, [Pair([3], [4])], None, None, clock)
    assert clock.remaining == 60.0
    assert any(pair.d1[0] > 7 for pair in search.propose())
    assert clock.remaining < 60.0


@dataclass(frozen=True)
class Visit:
    days: int
    ward: str


FRAME = pd.DataFrame({"ward": ["n", "s"], "days": [3, 40]})
TYPES = {
    "tuples": ([(3, "n"), (40, "s")], lambda data: any(days + 5 == 77 for days, _ in data)),
    "dataclasses": ([Visit(3, "n")] * 2, lambda data: any(v.days + 5 == 77 for v in data)),
    "arrays": (np.array([[3, 1], [40, 0]]), lambda data: (data[:, 0] + 5 == 77).any()),
    "frames": (FRAME, lambda frame: (frame["days"] + 5 == 77).any()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_types_of_data(name):
    data, is_open = TYPES[name]
    pairs, _ = proposed(gated(is_open), inputs=[data], neighbors="add_remove_one")
    assert any(is_open(pair.d1) and is_open(pair.d2) for pair in pairs)


def counted(leaks):
    def noisy_count(rows, rng):
        is_open = any(7 * a - 3 * b == 4_111 and a > b for a, b in rows)
        return len(rows) + rng.laplace(scale=0.02 if leaks and is_open else 1.0)

    return noisy_count


SHORT = [[(3, 40)], [(9_999, 0), (1, 1)]]
ONLY = {"eps": 1.0, "inputs": SHORT, "neighbors": "add_remove_one", "search": "symbolic", "seed": 1}


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.usefixtures("_verdict_only")
def test_an_audit_finds_what_is_behind_the_gate_and_says_how(monkeypatch):
    monkeypatch.setattr("pytest_dp.proposers.by_movement.MAX_OPENED", 0)  # which opens it, too
    result = audit(counted(True), **ONLY, n_jobs=1)
    assert any("symbolic: test_symbolic.py:" in note for note in result.beyond.notes)


def test_without_z3_only_who_asks_for_it_gets_an_error(monkeypatch):
    monkeypatch.setattr("pytest_dp.claiming.settings.find_spec", lambda name: None)
    with pytest.raises(ClaimError, match=r"pytest-dp\[z3\]"):
        audit(counted(True), **ONLY)


def pigeons():
    """Return what z3 does not answer for minutes: more pigeons than holes."""
    sits = [[z3.Bool(f"sits {at} {hole}") for hole in range(11)] for at in range(12)]
    hard = [z3.Or(holes) for holes in sits]
    pairs = combinations(sits, 2)
    return hard + [z3.Not(z3.And(a, b)) for both in pairs for a, b in zip(*both, strict=True)]


@pytest.fixture
def questions():
    asked = Questions(lambda: 0.5)
    yield asked
    asked.close()


@pytest.mark.slow
def test_a_question_that_does_not_end_is_given_up(questions):
    number = z3.Int("a")
    assert number_in(questions.solve_most([number == 3], [], []), number) == 3  # it has started
    assert questions.solve_most(pigeons(), [], []) is None
    assert questions.unanswered == 1
    assert number_in(questions.solve_most([number == 4], [], []), number) == 4  # by another


def test_a_process_that_hangs_is_ended(questions):
    """Whatever it does: here it is stopped."""
    assert questions.solve_most([], [], []) is not None
    (process,) = questions._process._processes
    os.kill(process, signal.SIGSTOP)
    assert questions.solve_most([], [], []) is None
    assert questions.unanswered == 1


def above_threshold(answers, rng, threshold, most):
    found = 0
    out = []
    for answer in answers:
        above = answer + rng.laplace(scale=4 * most) >= threshold
        out.append(above)
        found += above
        if found >= most:
            break
    return out


@pytest.mark.slow
def test_arguments_are_those_of_least_noise_on_which_answers_part():
    params = {"threshold": between(0, 9), "most": between(1, 5)}
    claim = {"pairs": [([3] * 4, [4] * 4)], "neighbors": "all_queries", "params": params}
    others = lambda pair: pair.params != {"threshold": 4, "most": 1}  # noqa: E731
    pairs, _ = proposed(above_threshold, 5, others, **claim)
    assert {"threshold": 4, "most": 1} in [dict(pair.params) for pair in pairs]
