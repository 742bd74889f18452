"""Attacks on membership: what they see of an output, and how they learn to score it.

Tables with the columns of the data are compared with the target record; models are asked about it;
whatever else comes out is taken apart as in any audit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Outputs
from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.betting.models import Design, design, fit_model
from pytest_dp.data.fields import cells_of, record_cells
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.features import all_features
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.outputs.user_features import function_name, target_record

MIN_PROBABILITY = 1e-12
"""Probability that a prediction counts with, at least: 0 would be an infinite score. Larger: sure
predictions look alike; smaller: one of them outweighs all others."""

ASKED = ("predict_proba", "score_samples", "decision_function", "predict")
"""What models say of records, by scikit-learn's names; the first one that there is counts."""

RAISED = "whether it raised, or lacks a quantity"
"""A quantity of every output: how many of the others it has not."""

Look = Callable[[Any], Any]
"""From an output to as many numbers for each output; the first is larger for members, if any is."""
MAX_DEVIATION = 4.0
"""Standard deviations that a standardised number may have. More: one odd output turns a score;
fewer: what stands out is cut off."""
MIN_LEFT = 1e-9
"""Share of an output's own weight that is left without it, at least. Smaller: rounding decides;
larger: outputs far out count too little."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The quantities of outputs, for each target: ``shown(outputs)``, shape (n, targets, width)."""

    looks: tuple[Look, ...]
    """One for each target."""
    labels: tuple[str, ...]
    """Of all but the last, which is `RAISED`."""

    def __call__(self, outputs: Outputs) -> Floats:
        rows = np.full((len(outputs), len(self.looks), len(self.labels) + 1), np.nan)
        for row, output in zip(rows, outputs, strict=True):
            row[:, -1] = isinstance(output, Raised)
            if isinstance(output, Raised):
                continue
            for at, look in enumerate(self.looks):
                numbers = np.ravel(np.asarray(look(output), dtype=np.float64))
                if len(numbers) != len(self.labels) and isinstance(look, Asking):
                    numbers = numbers[:1]  # a model that knows other classes
                elif len(numbers) != len(self.labels):
                    raise ClaimError(
                        f"{function_name(look)} returned {len(numbers)} numbers for an output, and "
                        f"{len(self.labels)} for another. Allowed: the same number for each."
                    )
                row[at, : len(numbers)] = numbers
        rows[..., -1] += np.isnan(rows[..., :-1]).sum(axis=-1)
        return rows

    def only(self, target: int) -> Shown:
        """Return the same for one target alone."""
        return Shown((self.looks[target],), self.labels)


@dataclass(frozen=True, slots=True)
class Asking:
    """``asking(model)``: what a model says of a record, by `ASKED`."""

    values: tuple[Any, ...]
    """Of the record; its label, where models were not trained on it as a column, is the last."""
    names: tuple[Any, ...] = ()
    """Of its columns, by which a model that was trained on a DataFrame knows them."""

    @property
    def __name__(self) -> str:
        return "the model"

    def split(self, model: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return what the model takes of the record, and its label, which is none or one."""
        named, taken = dict(zip(self.names, self.values, strict=False)), self._take(model)
        if taken and set(taken) <= named.keys():
            left = [value for name, value in named.items() if name not in taken]
            return tuple(named[name] for name in taken), tuple(left[:1])
        width = getattr(model, "n_features_in_", len(self.values))
        return self.values[:width], self.values[width:][:1]

    @staticmethod
    def _take(model: Any) -> list[Any]:
        return list(getattr(model, "feature_names_in_", ()))

    def __call__(self, model: Any) -> list[float]:
        asked = next(name for name in ASKED if callable(getattr(model, name, None)))
        x, label = self.split(model)
        taken, pandas = self._take(model), sys.modules.get("pandas")
        rows = pandas.DataFrame([x], columns=taken) if taken and pandas else np.array([x])
        said = np.ravel(np.asarray(getattr(model, asked)(rows)))
        if said.dtype.kind not in "biuf":  # labels
            return [float(said[0] == value) for value in label] or [0.0]
        numbers = said.astype(np.float64).tolist()
        return [_confidence(model, asked, said, label[0]), *numbers] if label else numbers


def _confidence(model: Any, asked: str, said: Any, label: Any) -> float:
    """Return how well a model fits the label of a record: larger, the better."""
    if asked == "predict":
        return -float(abs(float(said[0]) - float(label)))
    classes = list(getattr(model, "classes_", range(len(said))))
    at = classes.index(label) if label in classes else -1
    if asked == "decision_function" and len(said) == 1:
        return float(said[0]) if at == 1 else -float(said[0])
    if at < 0:
        return float(np.log(MIN_PROBABILITY))
    return float(np.log(max(said[at], MIN_PROBABILITY)) if asked == "predict_proba" else said[at])


def shown_of(
    example: Any,
    data: Any,
    targets: Sequence[tuple[int, Any, Any]],
    seed: int,
    score: Callable[[Any, Any], Any] | None = None,
    features: Callable[[Any], Any] | None = None,
) -> Shown | None:
    """Return what to look at in outputs such as the example; None if each is taken apart as it is.

    `targets` are positions, records, and the data without each. Raises ClaimError if a function of
    the user's raises, or a model cannot be asked about the records.
    """
    looks: list[Look]
    if features is not None:
        looks = [features] * len(targets)
    elif score is not None:
        looks = [_Scoring(score, record) for _, record, _ in targets]
    else:
        cells, known = cells_of(example), cells_of(data)
        if known is not None and cells is not None and cells.keys() == known.keys():
            wanted = [
                target_record(without, record_cells(data, at), seed) for at, _, without in targets
            ]
            if all(one is not None for one in wanted):
                tables = [one for one in wanted if one is not None]
                return Shown(tuple(tables), tuple(tables[0].labels))
        if not any(callable(getattr(example, name, None)) for name in ASKED):
            return None
        looks = [_asking(data, at) for at, _, _ in targets]
    return Shown(tuple(looks), _labels(looks[0], example))


def _asking(data: Any, at: int) -> Asking:
    record = record_cells(data, at) if cells_of(data) is not None else {None: data[at]}
    return Asking(tuple(record.values()), tuple(record))


@dataclass(frozen=True, slots=True)
class _Scoring:
    """``scoring(model)``: the user's score of a model for one record."""

    score: Callable[[Any, Any], Any]
    record: Any

    @property
    def __name__(self) -> str:
        return function_name(self.score)

    def __call__(self, model: Any) -> Any:
        return self.score(model, self.record)


def _labels(look: Look, example: Any) -> tuple[str, ...]:
    """Return what the numbers are called; raise ClaimError if there are none."""
    name = function_name(look)
    try:
        numbers = np.ravel(np.asarray(look(example), dtype=np.float64))
    except Exception as error:
        hint = "Write score=, a function of the model and the record that returns a number"
        raise ClaimError(
            f"{name} could not score a record: {type(error).__name__}: {error}, for "
            f"{on_one_line(example)}. {hint}, such as its loss."
        ) from error
    if not len(numbers):
        raise ClaimError(f"{name} returned no number. Allowed: a number, or several.")
    labels = [name] if len(numbers) == 1 else [f"{name}[{i}]" for i in range(len(numbers))]
    if isinstance(look, Asking) and look.split(example)[1]:
        labels[0] = "how well the model fits the record"
    return tuple(labels)


def first(rows: Floats) -> Floats:
    """Return the score before anything was learned: the first quantity of each row, shape (n,)."""
    return np.nan_to_num(rows[:, 0], nan=-np.inf)


@dataclass(frozen=True, slots=True)
class Learned:
    """A score that was learned, and what it mostly goes by."""

    score: Callable[[Any], Floats]
    """Of rows of quantities, or of outputs where these are taken apart."""
    told_by: str


def learn_attack(
    inside: Any, outside: Any, labels: Sequence[str], classifier: Any, seed: int
) -> Learned:
    """Learn to score what comes out with a record above what comes out without it.

    Both are rows of quantities with these labels, shape (n, width), or outputs if there are no
    labels. Where nothing varies, all score the same.
    """
    on_d = np.repeat([True, False], [len(inside), len(outside)])
    table = tabulate(np.concatenate([inside, outside]) if labels else [*inside, *outside])
    about = [Feature(label, "leaf", f"output[{i}]") for i, label in enumerate(labels)]
    about = about or all_features(table, on_d)
    if classifier is not None:
        model = fit_model(classifier, table, on_d, about, seed)
        return Learned(lambda each: model.log_odds(tabulate(each)), "a learned score")
    ridge = fit_ridge(table, on_d, about)
    return Learned(lambda each: ridge.score(tabulate(each)), ridge.told_by)


PENALTIES = 10.0 ** np.arange(-4, 6)
"""In outputs. Derived: from one that hardly any output notices to one that outweighs all."""


@dataclass(frozen=True, slots=True)
class Ridge:
    """A fitted score that ranks outputs; it says nothing about odds."""

    design: Design
    weights: Floats

    def score(self, table: Table) -> Floats:
        """Return the score of each output, shape (n,)."""
        scores: Floats = np.round(_near(self.design.matrix(table)) @ self.weights, 9)
        return scores

    @property
    def told_by(self) -> str:
        """Return the name of the number with the largest weight; empty if all weights are 0."""
        names = self.design.names
        return names[int(np.argmax(np.abs(self.weights)))] if np.any(self.weights) else ""


def _near(rows: Floats) -> Floats:
    return np.clip(rows, -MAX_DEVIATION, MAX_DEVIATION)  # one odd output is not to turn a score


def fit_ridge(table: Table, on_d: Bools, features: list[Feature]) -> Ridge:
    """Fit a ridge regression of the input, which a few outputs teach which quantity tells.

    Each quantity has a deviation that is its correlation with the input. How much all are drawn to
    nothing is chosen by the error of each output when it is left out, which has a closed form once
    the deviations are fixed.

    Sources: Golub, Heath, Wahba, "Generalized Cross-Validation as a Method for Choosing a Good
    Ridge Parameter", Technometrics 1979; Grandvalet, "Least Absolute Shrinkage is Equivalent to
    Quadratic Penalization", 1998 (ridge with a scale for each quantity).
    """
    plan = design(table, features)
    x, y = _near(plan.matrix(table)), np.where(on_d, 1.0, -1.0)
    y = y - y.mean()
    related = np.abs(x.T @ y) / len(y)
    left, sizes, right = np.linalg.svd(x * related, full_matrices=False)
    projected = left.T @ y
    best, weights = np.inf, np.zeros(x.shape[1])
    for penalty in PENALTIES:
        kept = sizes**2 / (sizes**2 + penalty)
        rest = y - left @ (kept * projected)
        leverage = np.minimum((left**2) @ kept + 1 / len(y), 1 - MIN_LEFT)
        error = float(((rest / (1 - leverage)) ** 2).mean())
        if error < best:
            best = error
            weights = right.T @ (sizes / (sizes**2 + penalty) * projected)
    return Ridge(plan, weights * related)
