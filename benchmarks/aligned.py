"""Alignments of draws: mechanisms on pandas, polars and numpy, and random ones of known loss.

Of each mechanism, 25 neighbouring pairs are aligned, the first with 200 replays and the
others with 20. A right one has to be within its claim on all of them in 2 CPU seconds; a wrong one
has to miss on one. Of random mechanisms (``--random 300``), none may have a bound below its true
loss, and at least 60 % of those that an alignment exists for have to have one.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import default_rng

from benchmarks.aligned_random import mechanism
from benchmarks.common import progress, table
from pytest_dp import audit
from pytest_dp.oracles.alignment import REPLAYS, REPLAYS_OF_LARGEST, align, align_within_claim
from pytest_dp.oracles.checking import Memory, NotAligned
from pytest_dp.privacy.stated import read_guarantee
from pytest_dp.report.violation import pass_worth
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument

REGIONS = ["north", "south", "east", "west"]
PAIRS = 25


def frame(rows: int = 300) -> Any:
    import pandas as pd

    rng = default_rng(0)
    data = pd.DataFrame(
        {
            "user": rng.integers(0, rows // 3, rows),
            "region": rng.choice(REGIONS, rows),
            "age": rng.integers(18, 90, rows).astype(float),
            "basket": np.minimum(rng.gamma(2.0, 20.0, rows), 100.0),
        }
    )
    data.loc[::20, "basket"] = np.nan
    return data


def counts_by_region(data: Any, rng: Any) -> Any:
    counts = data.groupby("region").size().reindex(REGIONS, fill_value=0)
    return (counts + rng.laplace(size=4)).round(1).to_dict()


def mean_basket(data: Any, rng: Any) -> Any:
    total = data["basket"].fillna(0.0).clip(0, 100).sum() + rng.laplace(scale=200.0)
    return total / (len(data) + rng.laplace(scale=2.0))


def mean_basket_split_wrongly(data: Any, rng: Any) -> Any:
    total = data["basket"].fillna(0.0).clip(0, 100).sum() + rng.laplace(scale=100.0)
    return total / (len(data) + rng.laplace(scale=1.25))


def mean_over_true_count(data: Any, rng: Any) -> Any:
    total = data["basket"].fillna(0.0).clip(0, 100).sum() + rng.laplace(scale=100.0)
    return total / max(len(data), 1)


def age_histogram(data: Any, rng: Any) -> Any:
    counts, _ = np.histogram(data["age"].clip(0, 99.5), bins=np.arange(0, 101, 10))
    return np.clip(np.round(counts + rng.laplace(size=10)), 0, None).tolist()


def missing_values_beside_sum(data: Any, rng: Any) -> Any:
    total = data["age"].clip(0, 100).sum() + rng.laplace(scale=100.0)
    return {"missing": int(data["basket"].isna().sum()), "ages": float(total)}


def histogram_as_json(data: Any, rng: Any) -> Any:
    counts = data["region"].value_counts()
    noisy = {r: round(max(0.0, counts.get(r, 0) + rng.laplace()), 2) for r in REGIONS}
    return json.dumps(noisy)


def histogram_without_noise_on_zeros(data: Any, rng: Any) -> Any:
    counts = data["region"].value_counts()
    return json.dumps({r: round(int(n) + rng.laplace(), 2) for r, n in sorted(counts.items())})


def top_two(data: Any, rng: Any) -> Any:
    counts = np.array([(data["region"] == region).sum() for region in REGIONS])
    noisy = counts + rng.laplace(scale=2.0, size=4)
    return [REGIONS[k] for k in np.argsort(-noisy)[:2]]


def top_two_with_counts(data: Any, rng: Any) -> Any:
    counts = np.array([(data["region"] == region).sum() for region in REGIONS])
    noisy = counts + rng.laplace(scale=2.0, size=4)
    return [(REGIONS[k], int(counts[k])) for k in np.argsort(-noisy)[:2]]


def three_ages_at_full_budget(data: Any, rng: Any) -> Any:
    counts = np.bincount(data["age"].astype(int), minlength=90)
    return np.argsort(-(counts + rng.gumbel(size=90)))[:3].tolist()


def noisy_tree(data: Any, rng: Any, scale: float) -> Any:
    levels = [np.histogram(data["age"], bins=16, range=(0, 100))[0].astype(float)]
    while len(levels[-1]) > 1:
        levels.append(levels[-1].reshape(-1, 2).sum(axis=1))
    noisy = [level + rng.laplace(scale=scale, size=len(level)) for level in levels]
    target, at = noisy[-1][0] / 2, 0
    for level in noisy[-2::-1]:
        at *= 2
        if target > level[at]:
            target, at = target - level[at], at + 1
    return 100 * at / 16


def median_by_tree(data: Any, rng: Any) -> Any:
    return noisy_tree(data, rng, 5.0)


def median_by_tree_at_full_budget(data: Any, rng: Any) -> Any:
    return noisy_tree(data, rng, 1.0)


def median_by_counts(data: Any, rng: Any) -> Any:
    edges = np.arange(0, 101, 10)
    counts, _ = np.histogram(data["age"].clip(0, 99.5), bins=edges)
    noisy = np.maximum(counts + rng.laplace(size=10), 0.0)
    return int(edges[np.searchsorted(np.cumsum(noisy), noisy.sum() / 2)])


def median_by_cumulated_counts(data: Any, rng: Any) -> Any:
    edges = np.arange(0, 101, 10)
    counts, _ = np.histogram(data["age"].clip(0, 99.5), bins=edges)
    return (np.cumsum(counts) + rng.laplace(size=10)).round(2)  # one record moves up to ten


def user_sums(data: Any, rng: Any) -> Any:
    first = data.groupby("user").head(1)
    spent = first["basket"].fillna(0.0).clip(0, 100)
    return float(spent.sum() + rng.laplace(scale=200.0))


def user_sums_unclipped(data: Any, rng: Any) -> Any:
    spent = 3.0 * data["basket"].fillna(0.0)
    return float(spent.sum() + rng.laplace(scale=100.0))


def two_queries(data: Any, rng: Any) -> Any:
    eps = 1.0
    young = (data["age"] < 30).sum() + rng.laplace(scale=1 / (0.3 * eps))
    return {"young": round(young), "all": len(data) + rng.laplace(scale=1 / (0.7 * eps))}


def two_queries_at_full_budget(data: Any, rng: Any) -> Any:
    young = (data["age"] < 30).sum() + rng.laplace()
    return {"young": round(young), "all": len(data) + rng.laplace()}


def clipped_vector(data: Any, rng: Any) -> Any:
    vectors = np.nan_to_num(data[["age", "basket"]].to_numpy())
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    clipped = vectors * np.minimum(1.0, 10.0 / np.maximum(norms, 1e-12))
    return clipped.sum(axis=0) + rng.normal(scale=45.0, size=2)


def unclipped_vector(data: Any, rng: Any) -> Any:
    vectors = np.nan_to_num(data[["age", "basket"]].to_numpy())
    return vectors.sum(axis=0) + rng.normal(scale=45.0, size=2)


def _answers(data: Any) -> list[float]:
    return [float((data["age"] < bound).sum()) - 3.4 * bound for bound in (30, 45, 60, 75, 90)]


def sparse_vector_1(data: Any, rng: Any) -> Any:
    threshold, found = rng.laplace(scale=2.0), []
    for answer in _answers(data):
        found.append(bool(answer + rng.laplace(scale=4.0) >= threshold))
        if found[-1]:
            break
    return found


def sparse_vector_2(data: Any, rng: Any) -> Any:
    threshold, found, left = rng.laplace(scale=4.0), [], 2
    for answer in _answers(data):
        if answer + rng.laplace(scale=8.0) >= threshold:
            found.append(True)
            threshold = rng.laplace(scale=4.0)
            left -= 1
        else:
            found.append(False)
        if not left:
            break
    return found


def sparse_vector_without_noise_on_answers(data: Any, rng: Any) -> Any:
    threshold = rng.laplace(scale=2.0)
    return [bool(answer >= threshold) for answer in _answers(data)]


def groups_without_threshold(data: Any, rng: Any) -> Any:
    counts = data.groupby("region").size()
    return {region: round(n + rng.laplace(), 1) for region, n in counts.items()}


def polars_counts(data: Any, rng: Any) -> Any:
    import polars as pl

    own = pl.DataFrame({"region": data["region"].to_list()})
    counts = [own.filter(pl.col("region") == region).height for region in REGIONS]
    noisy = pl.Series("n", counts).cast(pl.Float64) + rng.laplace(size=4)
    return noisy.clip(0.0).to_list()


def polars_sum(data: Any, rng: Any) -> Any:
    import polars as pl

    own = pl.DataFrame({"age": data["age"].to_numpy()})
    return round(own["age"].clip(0, 100).sum() + rng.laplace(scale=50.0), 2)


@dataclass(frozen=True)
class Case:
    """A mechanism, its claim, and whether it keeps it."""

    mechanism: Callable[..., Any]
    keeps: bool
    claim: dict[str, Any]
    new_group: bool = False
    """Whether pairs have a record of a region of its own."""


EPS: dict[str, Any] = {"eps": 1.0}
CASES = (
    Case(counts_by_region, True, EPS),
    Case(mean_basket, True, EPS),
    Case(mean_basket_split_wrongly, False, EPS),
    Case(mean_over_true_count, False, EPS),
    Case(age_histogram, True, EPS),
    Case(user_sums, True, EPS),
    Case(user_sums_unclipped, False, EPS),
    Case(missing_values_beside_sum, False, EPS),
    Case(histogram_as_json, True, EPS),
    Case(histogram_without_noise_on_zeros, False, EPS, new_group=True),
    Case(top_two, True, EPS),
    Case(top_two_with_counts, False, EPS),
    Case(three_ages_at_full_budget, False, EPS),
    Case(median_by_tree, True, EPS),
    Case(median_by_tree_at_full_budget, False, EPS),
    Case(median_by_counts, True, EPS),
    Case(median_by_cumulated_counts, False, EPS),
    Case(two_queries, True, EPS),
    Case(two_queries_at_full_budget, False, EPS),
    Case(clipped_vector, True, {"eps": 1.0, "delta": 1e-5}),
    Case(unclipped_vector, False, {"eps": 1.0, "delta": 1e-5}),
    Case(sparse_vector_1, True, EPS),
    Case(sparse_vector_2, True, EPS),
    Case(sparse_vector_without_noise_on_answers, False, EPS),
    Case(groups_without_threshold, False, {"eps": 1.0, "delta": 1e-5}, new_group=True),
    Case(polars_counts, True, EPS),
    Case(polars_sum, False, EPS),
)


def pairs_of(case: Case, rows: int) -> list[tuple[Any, Any]]:
    """Neighbouring pairs: the data without each of some records, the most extreme first."""
    data = frame(rows)
    if case.new_group:
        data.loc[7, "region"] = "centre"
    by_age = data["age"].sort_values().index
    order = [7, 0, *(at for both in zip(by_age, by_age[::-1], strict=True) for at in both)]
    chosen = list(dict.fromkeys(int(at) for at in order))[:PAIRS]
    return [(data, data.drop(index=at).reset_index(drop=True)) for at in chosen]


def aligned_on_pairs(case: Case, rows: int) -> tuple[bool, float, str]:
    """Whether all pairs are aligned within the claim, CPU seconds, and the bound or the reason."""
    call = Call(case.mechanism, {}, "rng", None, pristine=Pristine((case.mechanism, {})))
    promise, started, largest = read_guarantee(case.claim), time.process_time(), 0.0
    memory = Memory()
    for number, pair in enumerate(pairs_of(case, rows)):
        try:
            replays = REPLAYS_OF_LARGEST if number == 0 else REPLAYS
            known = align_within_claim(call, pair, promise, replays, Deadline(120.0), memory)
        except (CannotInstrument, OutOfTime) as reason:
            return False, time.process_time() - started, f"pair {number}: {reason}"
        largest = max(largest, known.parameter_of(promise))
    return True, time.process_time() - started, f"at most {largest:.3f}"


def audited(case: Case, rows: int) -> tuple[bool, float, str]:
    """The same by an audit on the data as the one example."""
    data, started = pairs_of(case, rows)[0][0], time.process_time()
    result = audit(case.mechanism, neighbors="add_remove_one", inputs=[data], **case.claim)
    said = f"{result.verdict} {result.strength} {pass_worth(result)}"
    return result.strength == "aligned", time.process_time() - started, said


def random_ones(count: int, first: int, replays: int = 200) -> tuple[int, int, list[str]]:
    """How many have an alignment by construction, of how many it was found, and what is wrong."""
    exist = found = 0
    wrong = []
    for seed in range(first, first + count):
        random = mechanism(seed)
        call = Call(random, {}, "rng", None, pristine=Pristine((random, {})))
        bound, enough = None, random.loss * (1 + 1e-4)
        try:
            alignment = align(
                call, (0, 1), lambda b, e=enough: b.eps_at(0.0) <= e, replays, Deadline(120.0)
            )
            bound = alignment.bound.eps_at(0.0)
        except NotAligned:
            pass
        exist += random.alignable
        found += random.alignable and bound is not None and bound < np.inf
        if bound is not None and bound < random.loss - 1e-6:
            wrong.append(f"seed {seed} ({random}): at most {bound:.4f}, but {random.loss:.4f}")
    return exist, found, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--audits", action="store_true", help="audit each in place of 25 pairs")
    parser.add_argument("--random", type=int, default=0, help="random ones, in place of cases")
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    if options.random:
        exist, found, wrong = random_ones(options.random, options.first_seed)
        print(f"{options.random} mechanisms: {found} of {exist} aligned, {len(wrong)} wrong")
        print(*wrong, sep="\n")
        raise SystemExit(bool(wrong) or found < 0.6 * exist)
    rows, missed = [], 0
    for case in CASES:
        name = case.mechanism.__name__
        if options.only not in name:
            continue
        progress(name)
        run = audited if options.audits else aligned_on_pairs
        is_aligned, seconds, said = run(case, options.rows)
        late = case.keeps and not options.audits and seconds > 2.0
        right = is_aligned == case.keeps and not late
        missed += not right
        kept = "right" if case.keeps else "wrong"
        rows.append([name, kept, "yes" if is_aligned else "no", f"{seconds:.2f}", said])
    print(table(["mechanism", "it is", "aligned", "CPU s", "what is said"], rows))
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
