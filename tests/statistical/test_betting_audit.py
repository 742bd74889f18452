"""Audits by betting: verdicts, known losses, pairs outside of the declared inputs."""

import itertools

import numpy as np
import pytest

from pytest_dp import Sequential, audit
from pytest_dp.known_losses import analytic_check
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.generators import Purpose
from pytest_dp.running.sampler import Sampler


def noisy(answer, scale, rng, size):
    return answer + rng.laplace(scale=scale, size=size)


def gaussian(answer, scale, rng, size):
    return answer + rng.normal(scale=scale, size=size)


def histogram(answers, scale, rng, size):
    return np.asarray(answers) + rng.laplace(scale=scale, size=(size, len(answers)))


CLAIMS = {
    "eps": (noisy, {"eps": 1.0}, 1.0),
    "eps, several numbers": (histogram, {"eps": 1.0}, 1.0),
    "eps and delta": (gaussian, {"eps": 1.0, "delta": 1e-5}, 3.7307),
}


def play(name, share, coupled, most):
    mechanism, claim, scale = CLAIMS[name]
    inputs = [([0, 0, 0], [1, 0, 0])] if mechanism is histogram else [(0.0, 1.0), (0.0, 0.5)]
    return audit(
        mechanism,
        params={"scale": share * scale},
        pairs=inputs,
        vectorized="size",
        method=Sequential(coupled=coupled),
        max_samples=most,
        margin=None,
        seed=5,
        n_jobs=1,
        **claim,
    )


@pytest.mark.canary
@pytest.mark.parametrize(("name", "coupled"), [*((name, True) for name in CLAIMS), ("eps", False)])
def test_too_little_noise_is_refuted_and_enough_noise_is_not(name, coupled):
    broken, kept = play(name, 0.25, coupled, 20_000), play(name, 1.0, coupled, 4_000)
    assert (broken.verdict, kept.verdict) == ("violated", "no violation")
    assert broken.lower >= broken.claim.promise.guarantee.claimed > kept.lower
    shown = broken.counterexample
    assert min(shown.runs) > 0
    assert shown.counts[0] / shown.runs[0] > shown.counts[1] / shown.runs[1]
    assert kept.estimate.mode == "aligned"


def opaque(answer, scale, rng, size):
    """Noise of which no law is enumerated, as it goes through bytes."""
    return np.frombuffer(np.asarray(answer + rng.laplace(scale=scale, size=size)).tobytes())


ONE_PAIR = {"pairs": [(0.0, 1.0)], "vectorized": "size", "n_jobs": 1, "seed": 3}


def test_a_loss_above_the_claim_is_bet_on_without_learning_it():
    """A value that comes once in a thousand runs on one input only is known from the branches."""

    def rare(answer, rng):
        return 7.0 if rng.random() < 0.001 * answer else 0.0

    claim = {"eps": 1.0, "delta": 1e-6, "pairs": [(0.0, 1.0)], "n_jobs": 1, "seed": 3}
    result = audit(rare, max_samples=200_000, **claim)
    assert result.verdict == "violated"
    assert str(result.counterexample.event).count("7")


def test_a_known_loss_that_real_runs_do_not_bear_out_is_no_pass_by_itself(monkeypatch):
    def refuted(known, sides):
        raise CannotInstrument("real runs give other outputs")

    monkeypatch.setattr(analytic_check, "hold_against", refuted)
    result = audit(noisy, eps=1.0, params={"scale": 1.2}, max_samples=6_000, **ONE_PAIR)
    assert result.estimate is None
    assert result.bet_samples > 1_000, "it was bet on"
    assert any("the grade rests on samples" in note for note in result.notes)


class Sign:
    """A classifier of a user's, who knows where outputs tell."""

    def fit(self, features, labels):
        self.classes_ = np.unique(labels)
        return self

    def predict_proba(self, features):
        above = np.clip(0.5 + 0.4 * np.sign(np.asarray(features)[:, 0] - 0.5), 0.1, 0.9)
        share = np.stack([1 - above, above], axis=1)
        return share if self.classes_[0] == 0 else share[:, ::-1]


def test_a_classifier_of_the_user_is_bet_on():
    method = Sequential(classifier=Sign())
    result = audit(opaque, eps=1.0, params={"scale": 0.25}, method=method, **ONE_PAIR)
    assert result.verdict == "violated"


@pytest.mark.canary
def test_what_is_broken_outside_of_the_declared_inputs_is_told_beside_the_verdict():
    def gated(ages, rng, size):
        return len(ages) + rng.laplace(scale=0.1 if 77 in ages else 1.0, size=size)

    given = {"inputs": [[18, 90, 35]], "neighbors": "add_remove_one", "vectorized": "size"}
    result = audit(gated, eps=1.0, max_samples=20_000, seed=1, n_jobs=1, **given)
    assert result.verdict == "no violation"
    assert result.e_value <= 1
    assert result.beyond.violated
    assert result.beyond.lower >= 1.0
    assert 77 in [*result.beyond.counterexample.d1, *result.beyond.counterexample.d2]


def test_pairs_outside_are_audited_on_samples_of_their_own(monkeypatch):
    keys, measure = [], Sampler.measure

    def noted(self, draws, *rest):
        keys.append({(*draw.key[:1], side, *draw.key[1:]) for side, draw in enumerate(draws)})
        return measure(self, draws, *rest)

    monkeypatch.setattr(Sampler, "measure", noted)
    given = {"inputs": [[0.5, 0.75]], "neighbors": "replace_one", "vectorized": "size"}
    audit(lambda rows, rng, size: sum(rows) + rng.laplace(size=size), eps=1.0, seed=1, **given)
    purposes = {key[0] for batch in keys for key in batch}
    assert {Purpose.BET, Purpose.OUTSIDE} <= purposes
    bets = [batch for batch in keys if {key[0] for key in batch} <= {Purpose.BET, Purpose.OUTSIDE}]
    for one, other in itertools.combinations(bets, 2):
        assert not one & other
