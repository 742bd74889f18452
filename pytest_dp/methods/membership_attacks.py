"""Attacks on membership: the quantities of an output that they see, and how they learn a score.

Tables with the columns of the data are compared with the target record; models are asked about it;
other outputs have the features of any audit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats, Outputs
from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.betting.additive import AdditiveScore, FeatureBins
from pytest_dp.betting.models import Posterior, fit_model
from pytest_dp.betting.scores import scores
from pytest_dp.data.fields import cells_of, record_cells
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.features import all_features
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.outputs.user_features import function_name, target_record
from pytest_dp.statistics.guessing_bounds import estimate_area

MIN_PROBABILITY = 1e-12
"""Probability of a prediction, at least: 0 would be an infinite score, and outweigh others."""

ASKED = ("predict_proba", "score_samples", "decision_function", "predict")
"""Methods of models that score records, by scikit-learn's names; the first that exists counts."""

RAISED = "whether it raised, or lacks a quantity"
"""The name of a quantity of every output: how many others it lacks, plus 1 if the run raised."""

Look = Callable[[Any], Any]
"""A function of an output that returns a fixed number of numbers, the first larger for members."""


@dataclass(frozen=True, slots=True)
class Quantities:
    """A function from outputs to their quantities for each target, shape (n, targets, width).

    Raises ClaimError if a function of the user's returns different numbers of numbers.
    """

    looks: tuple[Look, ...]
    """One function for each target."""
    labels: tuple[str, ...]
    """Names of all quantities but the last, which is `RAISED`."""

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

    def for_target(self, target: int) -> Quantities:
        """Return the quantities for one target alone."""
        return Quantities((self.looks[target],), self.labels)


@dataclass(frozen=True, slots=True)
class Asking:
    """A function from a model to its scores of one record, by the first method in `ASKED`."""

    values: tuple[Any, ...]
    """Values of the record; the last one is its label, if models are not trained on it as a column.
    """
    names: tuple[Any, ...] = ()
    """Names of its columns, for models that were trained on a DataFrame."""

    @property
    def __name__(self) -> str:
        return "the model"

    def split(self, model: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the record's values that a model takes, and its label in a tuple, maybe empty."""
        named, taken = dict(zip(self.names, self.values, strict=False)), self._trained_names(model)
        if taken and set(taken) <= named.keys():
            left = [value for name, value in named.items() if name not in taken]
            return tuple(named[name] for name in taken), tuple(left[:1])
        width = getattr(model, "n_features_in_", len(self.values))
        return self.values[:width], self.values[width:][:1]

    @staticmethod
    def _trained_names(model: Any) -> list[Any]:
        return list(getattr(model, "feature_names_in_", ()))

    def __call__(self, model: Any) -> list[float]:
        asked = next(name for name in ASKED if callable(getattr(model, name, None)))
        x, label = self.split(model)
        taken, pandas = self._trained_names(model), sys.modules.get("pandas")
        rows = pandas.DataFrame([x], columns=taken) if taken and pandas else np.array([x])
        said = np.ravel(np.asarray(getattr(model, asked)(rows)))
        if said.dtype.kind not in "biuf":  # labels
            return [float(said[0] == value) for value in label] or [0.0]
        numbers = said.astype(np.float64).tolist()
        return [_confidence(model, asked, said, label[0]), *numbers] if label else numbers


def _confidence(model: Any, asked: str, said: Any, label: Any) -> float:
    """Return how well a model's answer fits the label of a record; larger is better.

    The log probability, the decision value, or minus the distance of a prediction. A label that the
    model does not know counts as `MIN_PROBABILITY`.
    """
    if asked == "predict":
        return -float(abs(float(said[0]) - float(label)))
    classes = list(getattr(model, "classes_", range(len(said))))
    at = classes.index(label) if label in classes else -1
    if asked == "decision_function" and len(said) == 1:
        return float(said[0]) if at == 1 else -float(said[0])
    if at < 0:
        return float(np.log(MIN_PROBABILITY))
    return float(np.log(max(said[at], MIN_PROBABILITY)) if asked == "predict_proba" else said[at])


def quantities_of(
    example: Any,
    data: Any,
    targets: Sequence[tuple[int, Any, Any]],
    seed: int,
    score: Callable[[Any, Any], Any] | None = None,
    features: Callable[[Any], Any] | None = None,
) -> Quantities | None:
    """Return the quantities that attacks see of outputs like the example; None for whole outputs.

    `targets` are positions, records, and the data without each record. Raises ClaimError if a
    function of the user's raises, or a model cannot be asked about the records.
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
                return Quantities(tuple(tables), tuple(tables[0].labels))
        if not any(callable(getattr(example, name, None)) for name in ASKED):
            return None
        looks = [_question_about(data, at) for at, _, _ in targets]
    return Quantities(tuple(looks), _name_quantities(looks[0], example))


def _question_about(data: Any, at: int) -> Asking:
    """Return the question to models about the record at a position."""
    record = record_cells(data, at) if cells_of(data) is not None else {None: data[at]}
    return Asking(tuple(record.values()), tuple(record))


@dataclass(frozen=True, slots=True)
class _Scoring:
    """A function from a model to the user's score of the model for one record."""

    score: Callable[[Any, Any], Any]
    record: Any

    @property
    def __name__(self) -> str:
        return function_name(self.score)

    def __call__(self, model: Any) -> Any:
        return self.score(model, self.record)


def _name_quantities(look: Look, example: Any) -> tuple[str, ...]:
    """Return a name for each number of a look; raise ClaimError if it raises or returns none."""
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


@dataclass(frozen=True, slots=True)
class LearnedAttack:
    """A score of outputs that is larger for outputs with the record."""

    score: Callable[[Any], Floats]
    """Of rows of quantities, or of outputs, shape (n,)."""
    told_by: str
    """The name of the quantity with the largest weight."""


FIRST_QUANTITY = LearnedAttack(lambda rows: np.nan_to_num(rows[:, 0], nan=-np.inf), "")
"""The score before an attack was learned: the first quantity of each row."""


def learn_attack(
    inside: Any, outside: Any, labels: Sequence[str], classifier: Any, seed: int
) -> LearnedAttack:
    """Return a learned score that is larger for outputs with the record than without it.

    `inside` and `outside` are rows of quantities with these labels, shape (n, width), or outputs if
    there are no labels. If nothing varies, all outputs score equally.
    """
    on_d = np.repeat([True, False], [len(inside), len(outside)])
    table = tabulate(np.concatenate([inside, outside]) if labels else [*inside, *outside])
    about = [Feature(label, "leaf", f"output[{i}]") for i, label in enumerate(labels)]
    about = about or all_features(table, on_d)
    model = fit_model(classifier, table, on_d, about, seed)
    return LearnedAttack(lambda each: scores(model, tabulate(each)), _main_quantity(model, table))


def _main_quantity(model: Posterior, table: Table) -> str:
    """Return which quantity changes an additive score most, or "a learned score", or ""."""
    if not isinstance(model, AdditiveScore):
        return "a learned score"
    spreads = [float(np.std(part)) for part in model.parts(table)]
    column = model.columns[int(np.argmax(spreads))] if any(spreads) else None
    return column.feature.text if isinstance(column, FeatureBins) else ""


def cross_fitted_area(
    inside: Any, outside: Any, labels: Sequence[str], classifier: Any, seed: int
) -> tuple[float, float]:
    """Return AUC and standard error of attacks that learn from one half and score the other.

    The halves are not independent: where little leaks, chance moves both areas to one side. So the
    error is the mean of both, which is too large by a factor of 1.4 at most where much leaks.
    """
    middle = len(inside) // 2
    halves = slice(middle), slice(middle, None)
    areas = []
    for known, held_out in (halves, halves[::-1]):
        attack = learn_attack(inside[known], outside[known], labels, classifier, seed)
        areas.append(estimate_area(attack.score(inside[held_out]), attack.score(outside[held_out])))
    (one, error), (other, error2) = areas
    return (one + other) / 2, (error + error2) / 2
