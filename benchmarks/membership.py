"""Membership games on DataSynthesizer, beside what the paper found.

Run with an interpreter that has DataSynthesizer 0.1.13 and what pytest-dp needs:

    python -m benchmarks.membership games --records=8 --runs=60
    python -m benchmarks.membership eps
    python -m benchmarks.membership bugs

Data are 1,000 records like those of the census data set Adult, drawn here by its published
marginals, with dependences between a few columns that are made up. So numbers are to be compared
with the paper's in size only: it has the data itself, another implementation of the attack, which
it learns on other data than the target's, 15 columns and more records.

Source: Krco, Guepin, Meeus, Kulynych, de Montjoye, "Lost in the Averages: Reassessing
Record-Specific Privacy Risk Evaluation", 2024; Becker, Kohavi, "Adult", UCI 1996 (marginals); Ping,
Stoyanovich, Howe, "DataSynthesizer: Privacy-Preserving Synthetic Datasets", SSDBM 2017.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pytest_dp import audit, membership_risk, riskiest
from pytest_dp.statistics import clopper_pearson

MARGINALS = {
    "workclass": {"Private": 0.75, "Self": 0.115, "Local": 0.065, "State": 0.04, "Federal": 0.03},
    "education": {
        "HS-grad": 0.323,
        "College": 0.223,
        "Bachelors": 0.164,
        "Masters": 0.054,
        "Assoc": 0.075,
        "11th": 0.037,
        "10th": 0.028,
        "9th": 0.048,
        "Professional": 0.017,
        "Doctorate": 0.012,
        "Primary": 0.017,
        "Preschool": 0.002,
    },
    "marital": {
        "Married": 0.459,
        "Never": 0.33,
        "Divorced": 0.136,
        "Separated": 0.031,
        "Widowed": 0.031,
        "Absent": 0.013,
    },
    "occupation": {
        "Professional": 0.185,
        "Craft": 0.125,
        "Executive": 0.125,
        "Clerical": 0.115,
        "Sales": 0.112,
        "Service": 0.101,
        "Machines": 0.062,
        "Transport": 0.048,
        "Cleaner": 0.042,
        "Farming": 0.031,
        "Tech": 0.029,
        "Protective": 0.02,
        "House": 0.005,
    },
    "race": {"White": 0.854, "Black": 0.096, "Asian": 0.032, "Native": 0.01, "Other": 0.008},
}
AGE, HOURS = (38.6, 13.6, 17, 90), (40.4, 12.3, 1, 99)
"""Mean, deviation, smallest and largest."""
MALE, RICH = 0.669, 0.241
ORDER = ("age", "education", "occupation", "marital", "sex", "income", "hours", "workclass", "race")
EPS = (1_000.0, 10.0, 1.0, 0.1)


def adult_like(count: int, seed: int, width: int = len(ORDER)) -> Any:
    """So many records, as a data frame of nine columns, or fewer."""
    pandas, rng = import_module("pandas"), np.random.default_rng(seed)
    columns: dict[str, Any] = {"age": _whole(rng, count, AGE)}
    for name, shares in MARGINALS.items():
        total = sum(shares.values())
        columns[name] = rng.choice(list(shares), count, p=[p / total for p in shares.values()])
    young = columns["age"] < 25
    columns["marital"] = np.where(young & (rng.random(count) < 0.7), "Never", columns["marital"])
    columns["sex"] = np.where(rng.random(count) < MALE, "Male", "Female")
    columns["hours"] = _whole(rng, count, HOURS)
    usual = rng.random(count) < 0.467
    columns["hours"] = np.where(usual, 40, columns["hours"])
    learned = np.isin(columns["education"], ["Bachelors", "Masters", "Professional", "Doctorate"])
    chance = (
        RICH * np.where(learned, 2.0, 0.66) * np.where(columns["marital"] == "Married", 1.6, 0.5)
    )
    columns["income"] = np.where(rng.random(count) < np.minimum(chance, 1), ">50K", "<=50K")
    return pandas.DataFrame(columns)[list(ORDER[:width])]


def _whole(rng: np.random.Generator, count: int, law: tuple[float, float, int, int]) -> Any:
    mean, deviation, least, most = law
    shape = (mean - least) ** 2 / deviation**2  # skewed, as ages are
    drawn = least + rng.gamma(shape, deviation**2 / (mean - least), count)
    return np.clip(drawn, least, most).astype(int)


class _OneProcess:
    """In place of a pool of processes, which starts anew for each attribute."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def map(self, function: Any, tasks: Any) -> list[Any]:
        return list(map(function, tasks))


def synthesise(
    frame: Any, rng: np.random.Generator, rows: int, eps: float = 0.0, degree: int = 1
) -> Any:
    """So many records, by DataSynthesizer: BayNet, or PrivBayes with an eps above 0.

    Its functions have a seed of their own, 0 by default, which is drawn here.
    """
    describer = import_module("DataSynthesizer.DataDescriber").DataDescriber(histogram_bins=10)
    generator = import_module("DataSynthesizer.DataGenerator").DataGenerator()
    import_module("DataSynthesizer.lib.PrivBayes").Pool = _OneProcess
    seeds = rng.integers(2**31, size=2).tolist()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        table, description = str(Path(folder) / "in.csv"), str(Path(folder) / "about.json")
        frame.to_csv(table, index=False)
        describer.describe_dataset_in_correlated_attribute_mode(
            table,
            k=degree,
            epsilon=eps,
            attribute_to_is_candidate_key=dict.fromkeys(frame.columns, False),
            seed=seeds[0],
        )
        describer.save_dataset_description_to_file(description)
        generator.generate_dataset_in_correlated_attribute_mode(rows, description, seed=seeds[1])
    return generator.synthetic_dataset


def games(options: argparse.Namespace) -> None:
    """R_MS, R_T, RMSD and miss rates, beside those of the paper."""
    data = adult_like(options.size, 1, options.columns)
    population = adult_like(20 * options.size, 2, options.columns)
    for eps in options.eps:
        began = time.process_time()
        found = membership_risk(
            partial(synthesise, rows=options.size, eps=eps),
            data=data,
            records=riskiest(options.records),
            population=population,
            runs=options.runs,
            seed=options.seed,
        )
        name = f"PrivBayes, eps = {eps:g}" if eps else "BayNet"
        print(f"{name}: {options.runs} runs with and without each record")
        print(found)
        value, error = found.rmsd
        print(f"RMSD {value:.3f} +- {error:.3f}, noise subtracted (paper: .04 to .11)")
        for threshold, paper in ((0.6, "above .20"), (0.8, ".73 to .94"), (0.9, ".80")):
            rate = found.miss_rate(threshold)
            low, high = clopper_pearson.interval(rate.missed, rate.high, 0.05)
            print(
                f"miss rate at {threshold}: {rate.missed} of {rate.high}, {low:.2f} to {high:.2f} "
                f"(paper: {paper})"
            )
        print(f"CPU seconds: {time.process_time() - began:.0f}", flush=True)


def falling(options: argparse.Namespace) -> None:
    """The AUC of one record as eps falls: R_MS alone."""
    data = adult_like(options.size, 1, options.columns)
    for eps in EPS:
        found = membership_risk(
            partial(synthesise, rows=options.size, eps=eps),
            data=data,
            records=riskiest(options.records),
            runs=options.runs,
            seed=options.seed,
        )
        areas = [f"{one.fixed[0]:.3f} +- {one.fixed[1]:.3f}" for one in found.records]
        print(f"PrivBayes, eps = {eps:g}: AUC {', '.join(areas)}", flush=True)


def bugs(options: argparse.Namespace) -> None:
    """What DataSynthesizer reads from the data without noise, as claims of eps = 1."""
    pandas = import_module("pandas")
    usual = pandas.DataFrame(
        {
            "age": [20.0, 30, 40, 50] * 8,
            "mark": ["a", "b", "a", "b", "b", "a", "b", "a"] * 4,
            "kind": ["x", "x", "y", "y"] * 8,
        }
    )
    more = {
        "range of numbers": {"age": 95.0, "mark": "a", "kind": "x"},
        "domain of categories": {"age": 30.0, "mark": "c", "kind": "y"},
        "missing values": {"age": 30.0, "mark": None, "kind": "y"},
    }
    for name, record in more.items():
        larger = pandas.concat([usual, pandas.DataFrame([record])], ignore_index=True)
        result = audit(
            partial(synthesise, rows=len(usual), eps=1.0),
            eps=1.0,
            pairs=[(larger, usual)],
            seed=options.seed,
            max_seconds=options.seconds,
            max_samples=4_000,
        )
        print(f"{name}: {result}")
        if result.counterexample is not None:
            print(f"    {result.counterexample.event}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("what", choices=("games", "eps", "bugs"))
    parser.add_argument("--size", type=int, default=1_000)
    parser.add_argument("--columns", type=int, default=len(ORDER))
    parser.add_argument("--records", type=int, default=8)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--eps", type=float, nargs="*", default=[0.0])
    options = parser.parse_args()
    {"games": games, "eps": falling, "bugs": bugs}[options.what](options)


if __name__ == "__main__":
    main()
