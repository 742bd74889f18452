"""Models of which input an output came from: additive, linear, or a classifier of scikit-learn.

For linear models and classifiers, an output is a row of numbers, each with mean 0 and variance 1.
What is no number (None, NaN, an exception, a string, a missing element) is 0 there and has a flag
of its own, as special values have in the paper.

Source: Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper", IEEE S&P 2021.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.basics.errors import ClaimError
from pytest_dp.betting.additive import fit_additive
from pytest_dp.claiming.settings import Settings
from pytest_dp.outputs.feature import SPECIAL, Feature, numbers_and_categories
from pytest_dp.outputs.features import all_features, features, float_features
from pytest_dp.outputs.leaves import NUMBER, Category
from pytest_dp.outputs.paired_outputs import features_of_extract
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.outputs.user_features import user_features
from pytest_dp.statistics.soft_bets import logistic, logit

AS_PUBLISHED = ("logistic", "mlp")
"""The classifiers of the DP-Sniper paper, which are shown what they are shown there."""
MAX_DEVIATION = 1e6
"""Standard deviations at which numbers are cut off. More overflow."""
MAX_CATEGORIES = 64
"""Categories that a linear model knows. More learn noise by heart; fewer are not told apart."""
RIDGE = 1e-6
"""Penalty on squared weights, for each output. Smaller: weights may grow without end."""
MIN_DEVIATION = 1e-12
"""Deviation relative to the mean, at least. Smaller: rounding counts as variation."""


class Posterior(Protocol):
    """A model of which input an output came from."""

    def log_odds(self, table: Table) -> Floats:
        """Return ``ln P(D | output) - ln P(D' | output)`` in nats for equal priors, shape (n,)."""


def quantities(settings: Settings, table: Table, on_d: Bools, paired: int = 0) -> list[Feature]:
    """Return the features of outputs that a classifier is shown.

    Classifiers of the paper see numbers, categories and lengths of outputs, all others also sums,
    differences, extremes and counts. The user's own function, and the bits of doubles, are added if
    the settings ask for them. `on_d` marks outputs on D; the first `paired` outputs on either input
    share random numbers. An extract has the features that were kept.

    Raises ClaimError if the user's function raises, or gives anything but as many numbers for every
    output.
    """
    if table.is_extract:
        return features_of_extract(table)
    if isinstance(settings.method.classifier, str) and settings.method.classifier in AS_PUBLISHED:
        about = [f for f in features(table, on_d, paired) if f.kind in ("leaf", "len")]
    else:
        about = all_features(table, on_d, paired)
    if settings.features is not None:
        about = about + user_features(settings.features, table)
    if settings.floating_point:
        about = [replace(feature, exact=True) for feature in about + float_features(table, on_d)]
    return about


def check_by_itself(model: Posterior, about: list[Feature], table: Table) -> None:
    """Raise ClaimError if the user's functions do not look at each output by itself.

    A function that remembers earlier outputs, or looks at a whole batch, may distinguish two inputs
    better than one run does. So 64 outputs are scored together, and one by one in another order;
    their numbers have to agree. Raises ClaimError as well if a function raises.
    """
    sample = [table.raw[int(i)] for i in np.linspace(0, len(table) - 1, 64).astype(int)]
    user = [feature for feature in about if feature.kind == "user"]

    def numbers(outputs: list[Any]) -> Floats:
        batch = tabulate(outputs)
        columns = [feature.columns(batch)[0] for feature in user]
        return np.stack([model.log_odds(batch), *columns])

    together = numbers(sample)
    alone = np.concatenate([numbers([output]) for output in sample[::-1]], axis=1)[:, ::-1]
    close = [
        np.allclose(*rows, rtol=1e-4, atol=1e-6, equal_nan=True)
        for rows in zip(together, alone, strict=True)
    ]
    if not all(close):
        what = "features" if not all(close[1:]) else "classifier"
        raise ClaimError(
            f"{what}= gives the same output another number when it comes in another order or by "
            "itself. It must look at each output by itself: no memory of earlier outputs, no "
            "statistics of a batch, no random numbers."
        )


def fit_model(
    classifier: Any, table: Table, on_d: Bools, features: list[Feature], seed: int
) -> Posterior:
    """Fit and return a model of which outputs are on D, by about as many of either input.

    `classifier` is a name, an object with scikit-learn's interface, or None for the additive score.
    The seed is for classifiers that draw random numbers. Raises ClaimError if the classifier fails.
    """
    if classifier is None or (isinstance(classifier, str) and classifier == "additive"):
        return fit_additive(table, on_d, features)
    if isinstance(classifier, str) and classifier == "logistic":
        return fit_logistic(table, on_d, features)
    return fit_classifier(classifier, table, on_d, features, seed)


@dataclass(frozen=True, slots=True)
class Design:
    """The columns of a matrix with a row for each output: scaled numbers, then flags."""

    numbers: tuple[tuple[Feature, float, float], ...]
    """Features, each with the mean and the deviation by which its numbers are scaled."""
    flags: tuple[tuple[Feature, Category], ...]
    """Features, each with a category: the flag is 1 where the feature is of that category."""

    def matrix(self, table: Table) -> Floats:
        """Return scaled numbers (0 if none), then flags, of each output: shape (n, columns)."""
        rows = np.zeros((len(table), len(self.numbers) + len(self.flags)))
        for i, (feature, mean, deviation) in enumerate(self.numbers):
            values, kinds, _ = numbers_and_categories(feature, table)
            usable = kinds == NUMBER
            with np.errstate(over="ignore"):
                scaled = (values[usable] - mean) / deviation
            rows[usable, i] = np.clip(scaled, -MAX_DEVIATION, MAX_DEVIATION)
        for i, (feature, flag) in enumerate(self.flags, len(self.numbers)):
            _, kinds, names = numbers_and_categories(feature, table)
            rows[:, i] = kinds == names.index(flag) if flag in names else 0.0
        return rows

    @property
    def names(self) -> list[str]:
        """The meaning of each column, as text."""
        kinds = [kind if (kind, what) in SPECIAL else what for _, (kind, what) in self.flags]
        flags = [f"{f.text}: {what}" for (f, _), what in zip(self.flags, kinds, strict=True)]
        return [feature.text for feature, *_ in self.numbers] + flags


def design(table: Table, features: list[Feature]) -> Design:
    """Return columns for the numbers and categories of features that vary among outputs.

    Numbers too large for floats are left out, and categories after the first 64.
    """
    numbers, flags = [], []
    for feature in features:
        values, kinds, names = numbers_and_categories(feature, table)
        usable = values[kinds == NUMBER]
        if len(usable) and np.ptp(usable) > 0:
            with np.errstate(over="ignore"):
                mean, deviation = float(usable.mean()), float(usable.std())
            if np.isfinite(mean) and MIN_DEVIATION * abs(mean) < deviation < np.inf:
                numbers.append((feature, mean, deviation))
        counts = np.bincount(kinds[kinds != NUMBER], minlength=len(names))
        shown = [*SPECIAL, *list(table.levels)[:MAX_CATEGORIES]]
        flags += [(feature, f) for f in shown if 0 < counts[names.index(f)] < len(table)]
    return Design(tuple(numbers), tuple(flags))


@dataclass(frozen=True, slots=True)
class Logistic:
    """A fitted logistic regression, a `Posterior`."""

    design: Design
    weights: Floats
    intercept: float

    def log_odds(self, table: Table) -> Floats:
        odds: Floats = self.design.matrix(table) @ self.weights + self.intercept
        return odds


def fit_logistic(table: Table, on_d: Bools, features: list[Feature]) -> Logistic:
    """Fit and return a ridge logistic regression: the paper's first classifier, at its optimum."""
    plan = design(table, features)
    rows = plan.matrix(table)
    basis = np.concatenate([np.ones((1, len(rows))), rows.T])
    precision = np.full(len(basis), RIDGE * len(rows))
    weights = logistic(basis, on_d.astype(float), np.ones(len(rows)), precision)
    return Logistic(plan, weights[1:], float(weights[0]))


@dataclass(frozen=True, slots=True)
class Classified:
    """A fitted classifier with ``predict_proba``, as a `Posterior`."""

    design: Design
    classifier: Any
    column: int
    """The column of ``predict_proba`` with the probability of D."""

    def log_odds(self, table: Table) -> Floats:
        """Return the log odds of D, 0 for NaN, shape (n,); raise ClaimError as `chances`."""
        rows = self.design.matrix(table)
        if not len(rows):
            return np.zeros(0)
        # NaN, as for outputs unlike any before, says nothing about the input.
        likelier = np.nan_to_num(self.chances(rows), nan=0.5)
        odds: Floats = logit(np.clip(likelier, 1e-12, 1 - 1e-12))
        return odds

    def chances(self, rows: Floats) -> Floats:
        """Return the probability of D for each row, shape (n,), perhaps NaN.

        Raises ClaimError if the classifier raises, or returns another shape than (n, 2).
        """
        try:
            probabilities = np.asarray(self.classifier.predict_proba(rows), dtype=np.float64)
        except Exception as error:
            raise _classifier_error(self.classifier, "predict_proba", error) from error
        shape = probabilities.shape
        if shape != (len(rows), 2):
            raise ClaimError(
                f"{_name(self.classifier)}.predict_proba returned an array of shape {shape} "
                f"for {len(rows)} outputs. Allowed: shape ({len(rows)}, 2), a probability for each "
                "of the two inputs."
            )
        chances: Floats = probabilities[:, self.column]
        return chances


def fit_classifier(
    classifier: Any, table: Table, on_d: Bools, features: list[Feature], seed: int
) -> Classified:
    """Fit a copy of a classifier with scikit-learn's interface, and return it as a model.

    A text such as ``"mlp"`` stands for the network of the paper: two hidden layers, Adam, ten
    epochs. NumPy's global generator is seeded meanwhile, and restored. Raises ClaimError if `fit`
    raises.
    """
    by_paper = isinstance(classifier, str)
    if by_paper:
        from sklearn.neural_network import MLPClassifier

        classifier = MLPClassifier((10, 5), learning_rate_init=0.01, max_iter=10)
    plan = design(table, features)
    if not plan.numbers and not plan.flags:  # nothing varies: a flag that never rises will do
        plan = Design((), tuple((feature, SPECIAL[1]) for feature in features[:1]))
    untrained = copy.deepcopy(classifier)
    if hasattr(untrained, "get_params") and untrained.get_params().get("random_state", 0) is None:
        untrained.set_params(random_state=seed % 2**32)
    state = np.random.get_state()  # noqa: NPY002  the generator that scikit-learn falls back to
    np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        with warnings.catch_warnings():
            if by_paper:  # its network is meant to stop early
                warnings.simplefilter("ignore")
            fitted = untrained.fit(plan.matrix(table), on_d.astype(int))
    except Exception as error:
        raise _classifier_error(classifier, "fit", error) from error
    finally:
        np.random.set_state(state)  # noqa: NPY002
    fitted = untrained if fitted is None else fitted
    classes = list(getattr(fitted, "classes_", (0, 1)))
    return Classified(plan, fitted, classes.index(1) if 1 in classes else 1)


def _classifier_error(classifier: Any, what: str, error: Exception) -> ClaimError:
    """Return the ClaimError for a classifier that raised an error in its method `what`."""
    return ClaimError(
        f"classifier={_name(classifier)}: {what} raised {type(error).__name__}: {error}. Give an "
        "object with scikit-learn's interface, or leave classifier= out."
    )


def _name(classifier: Any) -> str:
    return type(classifier).__name__
