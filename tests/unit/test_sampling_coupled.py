"""Shared random numbers: where two inputs can have them, where they cannot, and why not."""

# ruff: noqa: NPY002
from __future__ import annotations

import functools
import random
import secrets
import time
from collections import deque

import numpy as np
import pytest

from pytest_dp.claim import expand
from pytest_dp.sampling import alignment, hidden
from pytest_dp.sampling.alignment import BOUND, FREE
from pytest_dp.sampling.calling import Raised, prepare, same
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.pieces import Input
from pytest_dp.sampling.restarting import CannotCouple, Runs
from pytest_dp.sampling.sampler import Draw, Sampler
from pytest_dp.sampling.streams import stream

ONE, OTHER = [1, 1], [1]
KEY = (1, 0, 0)


def sampler(mechanism, n_jobs=1, seed=1, **keywords):
    claim = expand({"eps": 1.0, "pairs": [([1], [0])], **keywords})[0]
    return Sampler(prepare(mechanism, claim), seed, n_jobs)


class Pair:
    """A mechanism and two inputs."""

    def __init__(self, mechanism, one=ONE, other=OTHER, **keywords):
        self.sampler = sampler(mechanism, **keywords)
        self.inputs = Input(one), Input(other)

    def can_couple(self, seconds=30.0):
        return self.sampler.can_couple(*self.inputs, Deadline(seconds))

    def draw(self, count=2_000, shared=True, key=KEY):
        draws = [Draw(given, count, key, shared) for given in self.inputs]
        return [list(outputs) for outputs in self.sampler.draw(draws, Deadline(60.0))]

    def draw_batches(self, batches, count):
        for batch in range(batches):
            self.draw(count, key=(1, 0, batch))


def assert_independent(x, y):
    """No output of one input goes with a neighbouring output of the other, or of its own."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    for lag in (1, 2, 3, 16):
        for a, b in ((x, x), (y, y), (x, y), (y, x)):
            r = np.corrcoef(a[lag:], b[:-lag])[0, 1]
            assert abs(r) < 4.5 / np.sqrt(len(x))


# --- one draw a call ---


def laplace(data, rng):
    return sum(data) + rng.laplace()


def data_dependent(data, rng):
    noise = [rng.laplace() for _ in range(1 + 3 * len(data))]
    return sum(data) + noise[0]


def rejects(data, rng):
    while True:
        noise = rng.normal()
        if noise > -1.5 + 0.2 * len(data):
            return sum(data) + noise


class Owner:
    def __init__(self, source):
        self.source = source

    def __call__(self, data):
        return sum(data) + self.source.normal(0.0, 1.0)


class OfTheStandardLibrary(Owner):
    def __call__(self, data):
        return sum(data) + self.source.gauss(0.0, 1.0)


KEPT = np.random.default_rng(8)


def in_a_global(data):
    return sum(data) + KEPT.normal()


def in_a_closure():
    source = np.random.default_rng(2)
    return lambda data: sum(data) + source.normal()


def odd_numbers_of_gauss(data):
    # each call leaves a spare value behind
    return sum(data) + random.gauss(0.0, 1.0)


def legacy_gauss(data):
    return sum(data) + np.random.normal()


def small_integers(data, rng):
    # keeps half of a 64-bit word for later
    return sum(data) + int(rng.integers(1_000_000, dtype=np.uint32))


def several_sources(data, rng):
    return sum(data) + rng.laplace() + np.random.laplace() + random.random()


SHARING = [
    laplace,
    data_dependent,
    rejects,
    in_a_global,
    odd_numbers_of_gauss,
    legacy_gauss,
    small_integers,
    several_sources,
    lambda data: sum(data) + random.expovariate(1.0),
    lambda data: sum(data) + np.random.exponential(),
    functools.partial(lambda scale, data, rng: sum(data) + scale * rng.laplace(), 2.0),
]


@pytest.mark.parametrize("mechanism", SHARING)
def test_one_draw_a_call_is_shared(mechanism):
    pair = Pair(mechanism)
    assert pair.can_couple()
    assert not any("not shared" in note for note in pair.sampler.notes)
    x, y = pair.draw()
    if mechanism is not rejects:
        assert {round(a - b, 6) for a, b in zip(x, y, strict=True)} == {1.0}
    else:
        assert sum(round(a - b, 6) == 1.0 for a, b in zip(x, y, strict=True)) > 1_500
    assert len(set(x)) > 1_990
    assert_independent(x, y)


@pytest.mark.parametrize(
    "make",
    [
        in_a_closure,
        *(
            functools.partial(lambda kind: Owner(np.random.Generator(kind(3))), kind)
            for kind in (
                np.random.PCG64,
                np.random.PCG64DXSM,
                np.random.Philox,
                np.random.SFC64,
                np.random.MT19937,
            )
        ),
        lambda: Owner(np.random.RandomState(3)),
        lambda: Owner(np.random.RandomState(np.random.PCG64(3))),
        lambda: OfTheStandardLibrary(random.Random(3)),
    ],
)
def test_kept_generators_are_restarted_and_put_back(make):
    mechanism = make()
    pair = Pair(mechanism)
    (source,) = pair.sampler.hidden.generators
    before = str(hidden.state_of(source))
    assert pair.can_couple()
    x, y = pair.draw()
    assert {round(a - b, 6) for a, b in zip(x, y, strict=True)} == {1.0}
    assert len(set(x)) == 2_000
    assert_independent(x, y)
    assert str(hidden.state_of(source)) == before


def test_global_generators_are_put_back():
    np.random.seed(3)
    random.seed(3)
    expected = np.random.random(), random.random()
    np.random.seed(3)
    random.seed(3)
    pair = Pair(several_sources)
    assert pair.can_couple()
    pair.draw(100)
    assert (np.random.random(), random.random()) == expected


def test_different_seeds_keys_and_ways_give_different_outputs():
    pair = Pair(laplace)
    drawn = [
        *pair.draw(50),
        pair.draw(50, key=(1, 0, 1))[0],
        pair.draw(50, shared=False)[0],
        Pair(laplace, seed=2).draw(50)[0],
    ]
    assert len({*drawn[0]}.intersection(*[{*other} for other in drawn[2:]])) == 0
    assert pair.draw(50) == drawn[:2]


def test_run_r_has_the_same_stream_whatever_ran_before():
    pair = Pair(laplace)
    assert pair.sampler.draw([Draw(pair.inputs[0], 1_000, KEY, True)], Deadline(9.0))[0][::-1] == [
        *reversed(pair.draw(1_000)[0])
    ]


def test_unshared_draws_are_what_they_were():
    expected = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(4, *KEY, 0, 0)))
    x, _ = Pair(laplace).draw(16, shared=False)
    assert x[0] == 2 + expected.laplace()


def test_every_source_has_a_stream_of_its_own():
    keeper = Owner(np.random.default_rng(1))
    with Runs(stream(1, *KEY), 50, hidden.find(keeper), frozenset()) as runs:
        drawn = []
        for run in [*range(50), 7]:
            runs.restart(run)
            drawn.append((runs.rng.random(), np.random.random(), keeper.source.random()))
            drawn[-1] += (random.random(),)
    assert drawn[7] == drawn[50]
    assert len({round(value, 12) for values in drawn[:50] for value in values}) == 200


def test_exceptions_are_outputs_and_do_not_shift_the_streams():
    def now_and_then(data, rng):
        noise = rng.random()
        if noise < 0.3 * len(data):
            raise ValueError
        return noise

    pair = Pair(now_and_then)
    assert pair.can_couple()
    x, y = pair.draw()
    assert 1_000 < sum(isinstance(output, Raised) for output in x) < 1_400
    assert all(same(a, b) for a, b in zip(x, y, strict=True) if not isinstance(a, Raised))
    assert [a for a in x if not isinstance(a, Raised)]


def test_reused_memory_is_copied():
    memory = [0.0]

    def reuses(data, rng):
        memory[0] = sum(data) + rng.laplace()
        return memory

    pair = Pair(reuses)
    assert pair.can_couple()
    x, y = pair.draw(300)
    assert {round(a[0] - b[0], 6) for a, b in zip(x, y, strict=True)} == {1.0}
    assert len({a[0] for a in x}) == 300


def test_a_source_that_the_trial_did_not_see_is_restarted_too():
    calls = [0]

    def rarely(data, rng):
        calls[0] += 1
        noise = rng.random()
        return noise + (random.random() if noise < 0.002 else 0.0)

    pair = Pair(rarely)
    assert pair.can_couple()
    assert 2 in pair.sampler._idle
    x, y = pair.draw(20_000)
    assert x == y == Pair(rarely).draw(20_000)[0]


# --- one draw a call that cannot be shared ---


def buffered(size, draw=lambda rng: rng.laplace(), per_input=False):
    kept: dict[int, deque[float]] = {}

    def mechanism(data, rng):
        noise = kept.setdefault(len(data) if per_input else 0, deque())
        if not noise:
            noise.extend(draw(rng) for _ in range(size))
        return sum(data) + noise.popleft()

    return mechanism


def buffered_by_need():
    noise: deque[float] = deque()

    def mechanism(data, rng):
        while len(noise) < len(data):
            noise.extend(rng.laplace(size=7))
        return sum(data) + sum(noise.popleft() for _ in range(len(data)))

    return mechanism


def buffered_on_the_side(size):
    noise: deque[float] = deque()

    def mechanism(data, rng):
        if not noise:
            noise.extend(rng.laplace(size=size))
        return sum(data) + rng.laplace() + noise.popleft()

    return mechanism


def rare_from_a_buffer(size):
    """Outputs tell nearly nothing; what is taken from the stream does."""
    rare: deque[bool] = deque()

    def mechanism(data, rng):
        if not rare:
            rare.extend(rng.random(size) < 1e-4)
        return len(data) + (rng.random() < 1e-4) + rare.popleft()

    return mechanism


def cached(most=None):
    @functools.lru_cache(most)
    def noise(length):
        return np.random.laplace()

    return lambda data: sum(data) + noise(len(data))


def counts():
    calls = [0]

    def mechanism(data, rng):
        calls[0] += 1
        return sum(data) + rng.laplace() + calls[0]

    return mechanism


def remembers_the_last():
    last = [0.0]

    def mechanism(data, rng):
        last[0] = 0.5 * last[0] + rng.laplace()
        return sum(data) + last[0]

    return mechanism


def out_of_reach():
    held = np.array([np.random.default_rng(3), None], dtype=object)
    return lambda data, rng: sum(data) + rng.laplace() + held[0].laplace()


def replaces_its_generator():
    held = Owner(np.random.default_rng(1))

    def mechanism(data):
        held.source = np.random.default_rng(held.source.integers(2**60))
        return sum(data) + held.source.laplace()

    return mechanism


REMEMBERING = {
    "buffer of 2": buffered(2),
    "buffer of 10": buffered(10),
    "buffer of 1000": buffered(1_000),
    "buffer of 100000": buffered(100_000),
    "buffer per input": buffered(50, per_input=True),
    "buffer of coin tosses": buffered(1_000, lambda rng: rng.random() < 0.02),
    "buffer used by need": buffered_by_need(),
    "second noise from a buffer": buffered_on_the_side(100_000),
    "rare values from a buffer": rare_from_a_buffer(3),
    "cache": cached(),
    "cache of one": cached(1),
    "counter": counts(),
    "running mean": remembers_the_last(),
    "generator out of reach": out_of_reach(),
    "new generators": replaces_its_generator(),
    "spawns": lambda data, rng: sum(data) + rng.spawn(1)[0].laplace(),
}


@pytest.mark.parametrize("name", REMEMBERING)
def test_what_depends_on_earlier_runs_is_not_shared(name):
    pair = Pair(REMEMBERING[name])
    assert not pair.can_couple()
    (note,) = [note for note in pair.sampler.notes if "not shared" in note]
    assert "depend on earlier runs" in note


@pytest.mark.parametrize("size", [20, 100_000])
def test_a_buffer_of_coin_tosses_that_was_filled_before_is_not_shared(size):
    pair = Pair(buffered(size, lambda rng: rng.random() < 0.001))
    pair.sampler.warm_up(pair.inputs[0], Deadline(30.0))
    assert not pair.can_couple()


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data: sum(data) + secrets.randbelow(1 << 40),
        lambda data: sum(data) + np.random.default_rng().laplace(),
        lambda data: sum(data) + random.SystemRandom().random(),
        lambda data: secrets.randbelow(1_000) == 0,
        lambda data: len(data),
    ],
)
def test_what_draws_on_nothing_within_reach_is_not_shared(mechanism):
    pair = Pair(mechanism)
    pair.sampler.warm_up(pair.inputs[0], Deadline(30.0))
    assert not pair.can_couple()
    assert pair.sampler.notes == []


def test_half_system_entropy_is_not_shared():
    assert not Pair(lambda data, rng: rng.laplace() + secrets.randbelow(1 << 40)).can_couple()


@pytest.mark.parametrize("period", [1_000, 10_000])
def test_checks_go_on_while_drawing(period):
    """Pure at first; later on, one run in ten adds what an earlier one left."""
    calls, left = [0], [0.0]

    def mechanism(data, rng):
        calls[0] += 1
        noise = rng.laplace()
        if calls[0] > period and noise < -1.6:
            noise += left[0]
            left[0] = noise
        return sum(data) + noise

    pair = Pair(mechanism)
    assert pair.can_couple()
    with pytest.raises(CannotCouple, match="earlier runs"):
        pair.draw_batches(20, 5_000)


def test_small_pieces_are_checked_now_and_then():
    mechanism, calls = counts(), []

    def counting(data, rng):
        calls.append(0)
        return mechanism(data, rng)

    pair = Pair(counting)
    with pytest.raises(CannotCouple):
        pair.draw_batches(200, 4)
    assert len(calls) < 1_000


def test_slow_mechanisms_are_tried_on_few_runs():
    calls = []

    def slow(data, rng):
        calls.append(0)
        time.sleep(0.02)
        return sum(data) + rng.laplace()

    pair = Pair(slow)
    assert pair.can_couple()
    assert len(calls) <= 6
    with pytest.raises(OutOfTime):
        pair.can_couple(seconds=0.01)


def test_inputs_that_are_changed():
    def changes(data, rng):
        data.append(1)
        return len(data) + rng.laplace()

    pair = Pair(changes)
    assert pair.can_couple()
    assert any("changes its input" in note for note in pair.sampler.notes)
    x, y = pair.draw()
    assert {round(a - b, 6) for a, b in zip(x, y, strict=True)} == {1.0}
    # without a trial the first pieces find out
    x, y = Pair(changes).draw()
    assert {round(a - b, 6) for a, b in zip(x, y, strict=True)} == {1.0}


def test_an_input_that_is_changed_late():
    calls = [0]

    def changes(data, rng):
        calls[0] += 1
        if calls[0] > 500:
            data.append(1)
        return len(data) + rng.laplace()

    pair = Pair(changes)
    assert pair.can_couple()
    x, y = pair.draw(20_000)
    assert {round(a - b, 6) for a, b in zip(x, y, strict=True)} == {1.0}


# --- many draws a call ---


def vectorized(mechanism, **keywords):
    return Pair(mechanism, vectorized="size", **keywords)


def rejection_loop_on_its_own(data, rng, size):
    noise = rng.laplace(size=size)
    while (far := abs(noise) > 1.0).any():
        noise = np.where(far, rng.laplace(size=size), noise)
    return sum(data) + noise


def two_steps(data, rng, size):
    noise = rng.exponential(2.0, size) - rng.exponential(2.0, size)
    return sum(data) + noise + rng.laplace(size=(size, 3)).sum(axis=1)


def scaled_by_data(data, rng, size):
    return sum(data) + rng.normal(0.0, np.arange(3) + len(data), (size, 3))[:, 0] / len(data)


def geometric(data, rng, size):
    return sum(data) + rng.geometric(0.1, size) - rng.geometric(0.1, size)


def randomized_response(data, rng, size):
    lies = rng.choice([False, True], size, p=[0.7, 0.3])
    return sum(data) + lies


def spherical(data, rng, size):
    return rng.multivariate_normal([sum(data), 0.0], [[1.0, 0.5], [0.5, 2.0]], size)[:, 0]


def branches(data, rng, size):
    noise = rng.laplace(size=(size, 2))
    return sum(data) + np.where(noise[:, 0] > 0, noise[:, 0], noise[:, 1])


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data, rng, size: sum(data) + rng.laplace(size=size),
        lambda data, rng, size: rng.laplace(sum(data), 1.0, size),
        lambda data, rng, size: rng.normal(loc=np.full(size, float(sum(data)))),
        lambda data, rng, size: list(sum(data) + rng.gumbel(size=size)),
        lambda data, rng, size: sum(data) - np.log(rng.random(size)),
        two_steps,
        scaled_by_data,
        geometric,
        branches,
        randomized_response,
        spherical,
        rejection_loop_on_its_own,
    ],
)
@pytest.mark.parametrize("count", [2_000, 70_000])
def test_many_draws_a_call_are_shared(mechanism, count):
    pair = vectorized(mechanism)
    assert pair.can_couple()
    assert pair.sampler.notes == []
    x, y = pair.draw(count)
    if mechanism is not scaled_by_data:
        assert set(np.round(np.subtract(x, y), 6)) == {1.0}
    assert len(set(x)) >= 2
    assert_independent(x, y)


def binomial(data, rng, size):
    return rng.binomial(100, 0.1 + 0.1 * len(data), size)


def rejection_loop(data, rng, size):
    noise = rng.laplace(size=size)
    while (far := noise + len(data) < 0).any():
        noise = np.where(far, rng.laplace(size=size), noise)
    return sum(data) + noise


def rejection_of_few(data, rng, size):
    noise = rng.laplace(size=size)
    while (far := abs(noise) > 1.0).any():
        noise[far] = rng.laplace(size=far.sum())
    return sum(data) + noise


def shuffled_by_data(data, rng, size):
    noise = rng.laplace(size=size)
    return sum(data) + (noise[::-1] if len(data) > 1 else noise)


def sorted_noise(data, rng, size):
    return sum(data) + np.sort(rng.laplace(size=size))


def running_sum(data, rng, size):
    return sum(data) + np.cumsum(rng.laplace(size=size))


def rolled(data, rng, size):
    return sum(data) + np.roll(rng.laplace(size=size), len(data))


def minus_the_mean(data, rng, size):
    noise = rng.laplace(size=size)
    return sum(data) + noise - noise.mean()


def another_shape(data, rng, size):
    return rng.laplace(size=(size, len(data))).sum(axis=1)


def other_axis(data, rng, size):
    return sum(data) + rng.laplace(size=(3, size)).sum(axis=0)


def one_by_one(data, rng, size):
    return [sum(data) + rng.laplace() for _ in range(size)]


def permuted(data, rng, size):
    return sum(data) + rng.permutation(rng.laplace(size=size))


def of_a_copy(data, rng, size):
    import copy

    return sum(data) + np.sort(copy.deepcopy(rng).laplace(size=size)) + rng.laplace(size=size)


def of_its_bits(data, rng, size):
    other = np.random.Generator(rng.bit_generator)
    return sum(data) + other.laplace(size=size) + rng.laplace(size=size)


def past_the_methods(data, rng, size):
    noise = np.random.Generator.laplace(rng, 0.0, 1.0, size)
    return sum(data) + noise + rng.laplace(size=size)


def into_memory(data, rng, size):
    noise = np.empty(size)
    rng.random(out=noise)
    return sum(data) + noise


def also_np_random(data, rng, size):
    return sum(data) + rng.laplace(size=size) + np.random.laplace(size=size)


def also_random(data, rng, size):
    return sum(data) + rng.laplace(size=size) + random.random()


def also_its_own(data, rng, size):
    return sum(data) + rng.laplace(size=size) + KEPT.normal(size=size)


def counts_calls():
    calls = [0]

    def mechanism(data, rng, size):
        calls[0] += 1
        return sum(data) + rng.laplace(size=size) + calls[0]

    return mechanism


@pytest.mark.parametrize(
    ("mechanism", "reason"),
    [
        (binomial, "different noise"),
        (rejection_loop, "different noise"),
        (another_shape, "different noise"),
        (lambda data, rng, size: rng.integers(1 + len(data), size=size), "different noise"),
        (rejection_of_few, "first axis"),
        (other_axis, "first axis"),
        (one_by_one, "first axis"),
        (shuffled_by_data, "noise of others"),
        (sorted_noise, "noise of others"),
        (running_sum, "noise of others"),
        (rolled, "noise of others"),
        (minus_the_mean, "noise of others"),
        (counts_calls(), "earlier calls"),
        (permuted, "permutation"),
        (lambda data, rng, size: sum(data) + rng.choice(size, size, False), "replace=False"),
        (lambda data, rng, size: rng.choice(size, size, replace=False), "replace=False"),
        (of_a_copy, "rng.__deepcopy__"),
        (of_its_bits, "bit_generator"),
        (past_the_methods, "past the methods"),
        (into_memory, "out="),
        (also_np_random, "more than rng"),
        (also_random, "more than rng"),
        (also_its_own, "more than rng"),
        (lambda data, size: sum(data) + np.random.laplace(size=size), "more than rng"),
    ],
)
def test_many_draws_a_call_that_cannot_be_shared(mechanism, reason):
    pair = vectorized(mechanism)
    assert not pair.can_couple()
    (note,) = [note for note in pair.sampler.notes if "not shared" in note]
    assert reason in note


def test_many_draws_of_system_entropy():
    pair = vectorized(lambda data, size: np.random.default_rng().laplace(size=size))
    assert not pair.can_couple()
    assert pair.sampler.notes == []


@pytest.mark.parametrize("late", ["np.random", "shape", "shuffle", "more"])
def test_many_draws_a_call_are_checked_while_drawing(late):
    """As it should be in the trial, and not later on."""
    calls = [0]

    def mechanism(data, rng, size):
        calls[0] += 1
        noise = rng.laplace(size=size)
        if calls[0] > 200:
            if late == "np.random":
                np.random.random()
            elif late == "shape":
                rng.laplace(size=len(data))
            elif late == "more" and len(data) > 1:
                rng.laplace(size=size)
            elif late == "shuffle":
                noise = np.sort(noise)
        return sum(data) + noise

    pair = vectorized(mechanism)
    assert pair.can_couple()
    with pytest.raises(CannotCouple):
        pair.draw_batches(200, 100)


def test_the_noise_of_two_inputs_is_compared_over_several_calls():
    pair = vectorized(rejection_loop)
    one, other = ([Draw(given, 300, KEY, True)] for given in pair.inputs)
    pair.sampler.draw(one, Deadline(9.0))
    with pytest.raises(CannotCouple, match="different noise"):
        pair.sampler.draw(other, Deadline(9.0))


def test_the_first_trial_is_long_and_further_ones_are_short():
    sizes = []

    def mechanism(data, rng, size):
        sizes.append(size)
        return sum(data) + rng.laplace(size=size)

    pair = vectorized(mechanism)
    assert pair.can_couple()
    assert max(sizes) >= 200
    sizes.clear()
    pair.inputs = Input([1, 1, 1]), Input(OTHER)
    assert pair.can_couple()
    assert sizes
    assert max(sizes) <= 64


def test_a_trial_on_copies_after_inputs_were_changed_is_a_first_one():
    """Even if the change has no effect on the outputs, so that the trial on the inputs passed."""
    sizes = []

    def changes(data, rng, size):
        data.append(0)
        sizes.append(size)
        return sum(data) + rng.laplace(size=size)

    pair = vectorized(changes)
    assert pair.can_couple()
    assert any("changes its input" in note for note in pair.sampler.notes)
    on_copies = [size for k, size in enumerate(sizes) if k > sizes.index(200)]
    assert max(on_copies[on_copies.index(64) :]) >= 200


@pytest.mark.parametrize(
    ("on_three", "reason"),
    [
        (lambda rng, size: rng.laplace(size=(size, 2))[:, 0], "different noise"),
        (lambda rng, size: np.repeat(rng.laplace(size=1), size), "first axis"),
        (lambda rng, size: np.roll(rng.laplace(size=size), 1), "of others"),
    ],
)
def test_a_short_trial_still_refuses(on_three, reason):
    """Fine on the first pair of inputs, and not on another."""

    def mechanism(data, rng, size):
        return sum(data) + (on_three(rng, size) if len(data) == 3 else rng.laplace(size=size))

    pair = vectorized(mechanism)
    assert pair.can_couple()
    pair.inputs = Input([1, 1, 1]), Input(OTHER)
    assert not pair.can_couple()
    (note,) = [note for note in pair.sampler.notes if "not shared" in note]
    assert reason in note


SCALED = {name: lambda s: (0.0, s) for name in FREE - {"multivariate_normal"}} | {
    "exponential": lambda s: (s,),
    "rayleigh": lambda s: (s,),
    "multivariate_normal": lambda s: ([s, 0.0], [[s, 0.0], [0.0, 2 * s]]),
}


@pytest.mark.parametrize("name", sorted(FREE))
def test_some_methods_take_the_same_numbers_whatever_their_arguments(name):
    ends = set()
    for scale in (0.0, 1e-9, 1.0, 1e9):
        rng = np.random.Generator(np.random.Philox(3))
        getattr(rng, name)(*SCALED[name](scale), size=40_000)
        ends.add(str(rng.bit_generator.state))
    assert len(ends) == 1


PLAIN = {name: scaled(1.0) for name, scaled in SCALED.items()} | {
    "geometric": (0.5,),
    "binomial": (7, 0.5),
    "negative_binomial": (7, 0.5),
    "poisson": (7,),
    "integers": (7,),
    "choice": (7,),
    "gamma": (2.0,),
    "standard_gamma": (2.0,),
    "chisquare": (2.0,),
    "standard_t": (2.0,),
    "weibull": (2.0,),
    "beta": (2.0, 3.0),
    "dirichlet": ([2.0, 3.0],),
    "multinomial": (7, [0.5, 0.5]),
}


@pytest.mark.parametrize("name", sorted(FREE | BOUND))
def test_rows_of_noise_do_not_depend_on_later_rows(name):
    few, many = (np.random.Generator(np.random.Philox(3)) for _ in range(2))
    args = PLAIN.get(name, ())
    short = getattr(few, name)(*args, size=10)
    assert np.array_equal(getattr(many, name)(*args, size=1_000)[:10], short)


def test_the_recorder_passes_for_a_generator():
    log = alignment.Log(np.random.default_rng(3), 5)
    assert isinstance(log.recorder, np.random.Generator)
    assert (log.recorder.laplace(size=5) == np.random.default_rng(3).laplace(size=5)).all()
    assert len(log.digest()) == 32


# --- processes ---


class Held(Owner):
    """A generator in an object, in a class that workers get by value."""


@pytest.mark.usefixtures("always_share", "stop_workers")
@pytest.mark.parametrize(
    ("mechanism", "keywords"),
    [
        (data_dependent, {}),
        (legacy_gauss, {}),
        (Held(np.random.default_rng(3)), {}),
        (lambda data, rng, size: sum(data) + rng.laplace(size=size), {"vectorized": "size"}),
    ],
)
def test_one_and_two_processes_give_the_same(mechanism, keywords):
    drawn = []
    for n_jobs in (1, 2):
        pair = Pair(mechanism, n_jobs=n_jobs, **keywords)
        pair.sampler.warm_up(pair.inputs[0], Deadline(30.0))
        assert pair.can_couple()
        drawn.append(pair.draw(40_000 if keywords else 600))
        assert pair.sampler.n_jobs == n_jobs
    assert drawn[0] == drawn[1]
    x, y = drawn[1]
    assert set(np.round(np.subtract(x, y), 6)) == {1.0}


@pytest.mark.usefixtures("always_share", "stop_workers")
def test_outputs_that_are_the_same_on_both_inputs_are_no_copies():
    pair = Pair(lambda data, rng: rng.laplace(), n_jobs=2)
    pair.sampler.warm_up(pair.inputs[0], Deadline(30.0))
    assert pair.can_couple()
    x, y = pair.draw(600)
    assert x == y
    assert pair.sampler.n_jobs == 2
    assert pair.sampler.notes == []


@pytest.mark.usefixtures("always_share", "stop_workers")
@pytest.mark.parametrize("keywords", [{}, {"vectorized": "size"}])
def test_the_reason_comes_back_from_other_processes(keywords):
    def remembers(data, rng):
        later = hasattr(remembers, "calls")
        remembers.calls = getattr(remembers, "calls", 0) + 1
        return rng.laplace() + (remembers.calls if later and remembers.calls > 2_000 else 0)

    pair = Pair(rejection_loop if keywords else remembers, n_jobs=2, **keywords)
    pair.sampler.warm_up(pair.inputs[0], Deadline(30.0))
    with pytest.raises(CannotCouple, match="different noise" if keywords else "earlier runs"):
        pair.draw(20_000)
