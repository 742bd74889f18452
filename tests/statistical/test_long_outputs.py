"""Outputs of hundreds or thousands of numbers: what leaks is found, in bounded time and memory."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from benchmarks.long_outputs import atom, encoding
from benchmarks.resolution import untraced
from pytest_dp import Sequential, audit
from pytest_dp.auditors import pairs_in_play

ZEROS = [0.0] * 100


pytestmark = pytest.mark.usefixtures("_without_blame")


def moved(at):
    return [float(i == at) for i in range(100)]


def audited(mechanism, pair, **keywords):
    keywords = {"eps": 1.0, "max_samples": 8_000, "max_seconds": 600, "seed": 0} | keywords
    return audit(mechanism, pairs=[pair], n_jobs=1, **keywords)


@untraced
def noisy(answers, size, rng, scale=1.0):
    return np.asarray(answers) + rng.laplace(scale=scale, size=(size, len(answers)))


def quieter_there(answers, size, rng, scale):
    """The coordinate that moves has less noise than the others, unless the scale is 1."""
    noise = rng.laplace(size=(size, len(answers)))
    noise[:, 62] *= scale
    return np.asarray(answers) + noise


def histogram(records, rng, scale, cells=10_000, kind=np.asarray):
    return kind(np.bincount(records, minlength=cells) + rng.laplace(scale=scale, size=cells))


def by_name(numbers):
    return {f"cell {i}": number for i, number in enumerate(numbers.tolist())}


def spoken_of(event):
    """The event as it reads, or what its score is learned from."""
    model = getattr(event, "model", None)
    return str(event) if model is None else str([column.feature.text for column in model.columns])


MANY = {"vectorized": "size"}
CASES = {
    "one of 100": (quieter_there, (moved(62), ZEROS), "scale", (1 / 4, 1.0), MANY),
    "atom": (atom, (moved(37), ZEROS), "leak", (0.05, 0.0), MANY),
    "bits": (encoding, (3, 700), "eps", (1.3, 1.0), MANY | {"max_samples": 20_000}),
}


@pytest.mark.spot(4)
@pytest.mark.usefixtures("_verdict_only")
@pytest.mark.parametrize(
    ("case", "coupled"), [*((case, True) for case in CASES), ("one of 100", False)]
)
def test_a_leak_in_a_long_output_is_found_and_its_twin_passes(case, coupled):
    mechanism, pair, name, (broken, right), keywords = CASES[case]
    found = audited(
        mechanism, pair, params={name: broken}, method=Sequential(coupled=coupled), **keywords
    )
    assert found.violated
    keywords = keywords | {"max_samples": 2_500}
    twin = audited(
        mechanism, pair, params={name: right}, method=Sequential(coupled=coupled), **keywords
    )
    assert twin.verdict == "no violation"


@pytest.mark.nightly
@pytest.mark.spot(3)
@pytest.mark.parametrize(
    ("kind", "cells", "place"),
    [
        (lambda counts: counts.reshape(20, 20), 400, "output[16, 1]"),
        (np.asarray, 10_000, "output[321]"),
        (by_name, 400, "output['cell 321']"),
    ],
)
def test_a_long_histogram_with_half_the_noise(kind, cells, place):
    def mechanism(records, rng, scale):
        return histogram(records, rng, scale, cells, kind)

    pair = [5, 7, 321, 77], [5, 7, 77]
    found = audited(mechanism, pair, params={"scale": 0.5}, max_samples=2_000)
    assert found.violated
    assert place in spoken_of(found.counterexample.event)
    twin = audited(mechanism, pair, params={"scale": 1.0}, max_samples=1_000)
    assert not twin.violated
    assert not any("same outputs" in note for note in twin.notes)


def with_exceptions(answers, rng, scale):
    noise = rng.laplace(size=len(answers))
    noise[62] *= scale
    if noise[0] > 3:
        raise ValueError
    return (np.asarray(answers) + noise).tolist()


def with_gaps(answers, rng, scale):
    noise = rng.laplace(size=len(answers))
    noise[62] *= scale
    noisy, gaps = np.asarray(answers) + noise, rng.random(len(answers)) < 0.06
    return [None if gap else x for x, gap in zip(noisy.tolist(), gaps, strict=True)]


@pytest.mark.spot(2)
@pytest.mark.usefixtures("_verdict_only")
@pytest.mark.parametrize(("mechanism", "coupled"), [(with_exceptions, True), (with_gaps, False)])
def test_extracts_take_over_where_there_is_no_room_for_outputs(monkeypatch, mechanism, coupled):
    monkeypatch.setattr(pairs_in_play, "TOTAL_ROOM", 10_000)
    monkeypatch.setattr(pairs_in_play, "MIN_ROOM", 10_000)
    claim = {"method": Sequential(coupled=coupled)}
    pair = moved(62), ZEROS
    assert audited(mechanism, pair, params={"scale": 0.3}, max_samples=6_000, **claim).violated
    twin = audited(mechanism, pair, params={"scale": 1.0}, max_samples=2_000, **claim)
    assert twin.verdict == "no violation"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["arrays", pytest.param("lists", marks=pytest.mark.nightly)])
def test_memory_stays_bounded(kind):
    """Numbers in a list take four times as much as in an array; copies are run as well."""
    script = textwrap.dedent(
        """
        import resource, sys
        import numpy as np
        from pytest_dp import audit

        def vectorised(records, rng, size):
            counts = np.bincount(records, minlength=10_000)
            return counts + rng.laplace(scale=0.9, size=(size, 10_000))

        def listed(records, rng):
            counts = np.bincount(records, minlength=10_000)
            return (counts + rng.laplace(scale=0.5, size=10_000)).tolist()

        mechanism, most = {"arrays": (vectorised, 4_000), "lists": (listed, 3_000)}[sys.argv[1]]
        result = audit(
            mechanism,
            eps=1.0,
            pairs=[([5, 7, 321, 77], [5, 7, 77])],
            vectorized="size" if sys.argv[1] == "arrays" else None,
            max_samples=most,
            max_seconds=600,
            seed=0,
            n_jobs=1,
        )
        assert result.violated or sys.argv[1] == "arrays"
        try:  # of this program alone; `ru_maxrss` begins with that of whoever started it
            with open("/proc/self/status") as status:
                [most] = [line.split()[1] for line in status if line.startswith("VmHWM")]
        except OSError:
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(most)
        """
    )
    command = [sys.executable, "-c", script, kind]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    kilobytes = int(ran.stdout) // (1024 if sys.platform == "darwin" else 1)
    assert kilobytes < {"arrays": 500_000, "lists": 300_000}[kind]
