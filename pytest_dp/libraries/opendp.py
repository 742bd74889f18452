"""OpenDP: claims of measurements, by their own privacy maps, domains, metrics and measures."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.claiming.more_declarations import Claimed
from pytest_dp.declaration import Queries, add_remove_one, queries, replace_one, values
from pytest_dp.libraries import import_library, profile, refuse_promises
from pytest_dp.pairs import patterns

ROUNDING = 1e-9
"""Relative error of a distance. Larger: too far pairs pass; smaller: rounding refuses right
ones."""

MEASURES = {
    "MaxDivergence": ("eps",),
    "ZeroConcentratedDivergence": ("rho",),
    "Approximate(MaxDivergence)": ("eps", "delta"),
    "Approximate(ZeroConcentratedDivergence)": ("rho", "delta"),
}
"""Keywords of the claim for the values of a privacy map, by its output measure."""
RECORDS = {
    "SymmetricDistance": False,
    "InsertDeleteDistance": False,
    "ChangeOneDistance": True,
    "HammingDistance": True,
}
"""Metrics of records, and whether neighbours replace a record instead of adding one."""
QUERIES = 5
"""Answers of a vector without a size in its domain. More hide more noise, and take longer."""
VECTORS = {"L1Distance": 1.0, "L2Distance": 2.0, "LInfDistance": math.inf}
"""Metrics of vectors, and the order of their norm."""
MAPS = {"L01InfDistance": 1, "L02InfDistance": 2}
"""Metrics of numbers by key: how many differ, by which norm, and by how much at most."""
POWERS = {"eps": 1, "rho": 2}
"""Powers of the size of a group with which its bound grows. Given by group privacy."""


def claimed(measurement: Any, d_in: Any = 1, /, *, marks: Any = (), **claim: Any) -> Claimed:
    """Return a measurement as an entry of `claims`, with the promise of its map at a distance.

    Raises ClaimError if the promise or the neighbours do not follow, or `pairs` are outside the
    domain or too far apart.

    Parameters
    ----------
    measurement : opendp.mod.Measurement
        Of pure, zero-concentrated, approximate or smoothed divergence.
    d_in : number, optional
        Distance of neighbours, in the input metric. More than one record makes groups.
    marks : mark or iterable of marks, optional
        As of ``pytest.param``.
    **claim
        Further keywords of `dp_claim`: ``inputs=`` if the metric is about records, ``pairs=`` if it
        is about numbers. By default, pairs are made for one number, and for vectors with a size in
        their domain; inputs for bool. If each entry of a vector may move, as for scores to select
        from, the default is ``queries(n)``; ``inputs=`` may name it.
    """
    kind = import_library("opendp.mod").Measurement
    if not isinstance(measurement, kind):
        raise invalid("measurement", measurement, "Allowed: a Measurement of opendp.")
    refuse_promises(claim, "measurement")
    promised = _keywords_for_promise(measurement, d_in)
    if "pairs" in claim:
        _check_pairs(measurement, d_in, claim["pairs"])
    else:
        promised |= _keywords_for_neighbours(measurement, d_in, promised, claim)
    claim.setdefault("beyond", "off")  # what is outside of the domain is not promised
    return Claimed(measurement, marks=marks, **claim | promised)


def _keywords_for_promise(measurement: Any, d_in: Any) -> dict[str, Any]:
    """Return the promise of a measurement's map at `d_in`, as keywords of a claim.

    Raises ClaimError if the map refuses `d_in`, or for measures other than `MEASURES`.
    """
    try:
        bound = measurement.map(d_in)
    except Exception as error:
        kind = measurement.input_distance_type
        allowed = f"Allowed: a distance by {measurement.input_metric}, of type {kind}."
        raise invalid("d_in", d_in, f"{allowed} OpenDP says: {_short_message(error)}") from None
    measure = str(measurement.output_measure)
    if measure == "SmoothedMaxDivergence":
        return {"guarantee": profile(bound.delta, "opendp")}
    if measure not in MEASURES:
        known = ", ".join([*MEASURES, "SmoothedMaxDivergence"])
        raise invalid("measurement", measure, f"Allowed: measurements of {known}.")
    names = MEASURES[measure]
    promised = dict(zip(names, bound if len(names) > 1 else (bound,), strict=True))
    return {name: value for name, value in promised.items() if name != "delta" or value}


def _keywords_for_neighbours(
    measurement: Any, d_in: Any, promised: dict[str, Any], claim: dict[str, Any]
) -> dict[str, Any]:
    """Return keywords for the neighbours by a metric; for groups, with other promises.

    May take `inputs` out of the claim. Raises ClaimError if no neighbours follow.
    """
    metric = _metric(measurement)
    if metric in RECORDS:
        if "inputs" in claim:
            return _keywords_for_records(measurement, d_in, promised)
        better = f"inputs=[...], example datasets of {measurement.input_domain}, or pairs=[(D, D')]"
    elif metric == "DiscreteDistance":
        if "inputs" in claim:
            return {}
        if measurement.input_carrier_type == "bool":
            return {"inputs": values([True, False])}
        better = "inputs=values([...]), of which any two are neighbours"
    elif metric == "LInfDistance":
        return _keywords_for_answers(measurement, d_in, claim)
    else:
        pairs = _pair_at_distance(measurement, d_in)
        if pairs and "inputs" not in claim:
            return {"pairs": pairs}
        better = f"pairs=[(x, x')] with distance {d_in} or less"
    raise ClaimError(f"The neighbours by {metric} are not given. Write {better}.")


def _keywords_for_records(measurement: Any, d_in: int, promised: dict[str, Any]) -> dict[str, Any]:
    """Return keywords for a metric of records; for groups, with the promise for one record.

    Raises ClaimError if no neighbours have the distance `d_in`.
    """
    metric, replaces = _metric(measurement), RECORDS[_metric(measurement)]
    sized = getattr(measurement.input_domain, "size", None) is not None
    one = 2 if sized and not replaces else 1
    relation = replace_one if replaces or one == 2 else add_remove_one
    group, rest = divmod(d_in, one)
    if rest or (group != 1 and promised.keys() - {"eps", "rho"}):
        raise invalid(
            "d_in",
            d_in,
            f"Neighbours in {measurement.input_domain} have distance {one} by {metric}; multiples "
            f"are allowed for eps and rho. Write {one}, or pairs=[(D, D')].",
        )
    if group == 1:
        return {"neighbors": relation()}
    each = {name: bound / group ** POWERS[name] for name, bound in promised.items()}
    return {**each, "neighbors": relation(group=group)}


def _pair_at_distance(measurement: Any, d_in: Any) -> list[tuple[Any, Any]]:
    """Return a list of one pair of numbers, or of vectors of known size, at the distance.

    Empty for other inputs, and if the pair is not in the domain.
    """
    metric, domain = _metric(measurement), measurement.input_domain
    if metric != "AbsoluteDistance" and metric not in VECTORS:
        return []
    size = getattr(domain, "size", None)
    inner = domain if metric == "AbsoluteDistance" else getattr(domain, "element_domain", None)
    bounds = getattr(inner, "bounds", None)
    start = bounds[0] if bounds else d_in - d_in  # a zero of its type
    if metric == "AbsoluteDistance":
        pair: Any = (start, start + d_in)
    elif size:
        pair = [start] * size, [start + d_in, *[start] * (size - 1)]
    else:
        return []
    return [pair] if all(map(domain.member, pair)) else []


def _keywords_for_answers(measurement: Any, d_in: Any, claim: dict[str, Any]) -> dict[str, Any]:
    """Take `inputs` out of a claim; return keywords for vectors whose entries move by `d_in`.

    All entries move one way if the metric is monotonic. Raises ClaimError if no such vectors are in
    the domain, or `inputs` is not of `queries`.
    """
    domain, given = measurement.input_domain, claim.pop("inputs", None)
    if given is not None and not isinstance(given, Queries):
        raise invalid(
            "inputs",
            given,
            "Neighbours by LInfDistance are vectors, each entry of which moves by at most d_in. "
            "Allowed: queries(5), or pairs=[(x, x')].",
        )
    size = getattr(domain, "size", None)
    lengths = given.lengths if given else (size or QUERIES,)
    is_monotonic = "monotonic" in str(measurement.input_metric)
    bounds = getattr(getattr(domain, "element_domain", None), "bounds", None)
    is_whole = not str(measurement.input_distance_type).startswith("f")
    if d_in == 1 and is_whole and bounds is None and size is None and not is_monotonic:
        return {"inputs": queries(*lengths), "neighbors": "all_queries"}
    number = int if is_whole else float
    start = number(bounds[0] if bounds else 0)
    pairs = []
    for one, other in (pair for length in lengths for pair in patterns(length)):
        moves = np.subtract(other, one)
        pair = tuple([start + number(answer * d_in) for answer in side] for side in (one, other))
        is_one_way = (moves >= 0).all() or (moves <= 0).all()
        if (is_one_way or not is_monotonic) and all(map(domain.member, pair)) and moves.any():
            pairs.append(pair)
    if not pairs:
        raise ClaimError(
            f"No vectors of {' or '.join(map(str, lengths))} entries at distance {d_in} are in "
            f"{domain}. Write pairs=[(x, x')] of its vectors."
        )
    return {"pairs": pairs}


def _check_pairs(measurement: Any, d_in: Any, pairs: Any) -> None:
    """Raise ClaimError for pairs outside the domain, or further apart than `d_in`."""
    if not isinstance(pairs, list | tuple):
        return  # such as a strategy: nothing is known of its values yet
    for number, pair in enumerate(pairs):
        named = f"pairs[{number}]"
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            return  # what a claim says itself
        for data in pair:
            if not measurement.input_domain.member(data):
                raise invalid(named, pair, f"{data!r} is not in {measurement.input_domain}.")
        far = _distance(_metric(measurement), *pair)
        if np.any(np.array(far) * (1 - ROUNDING) > d_in):
            far = tuple(map(float, far)) if isinstance(far, tuple) else float(far)
            raise invalid(named, pair, f"It is {far} apart. Allowed: at most d_in={d_in}.")


def _distance(metric: str, one: Any, other: Any) -> Any:
    """Return a lower bound on a distance; a tuple of three for numbers by key; 0 if unknown."""
    if metric == "AbsoluteDistance":
        return abs(one - other)
    if metric in VECTORS:
        if len(one) != len(other):
            return math.inf
        return np.linalg.norm(np.subtract(one, other), VECTORS[metric])
    if metric in MAPS:
        moves = [one.get(key, 0) - other.get(key, 0) for key in one.keys() | other.keys()]
        return tuple(np.linalg.norm(moves, order) for order in (0, MAPS[metric], math.inf))
    if metric in RECORDS:
        counts, others = Counter(one), Counter(other)
        moved = (counts - others).total() + (others - counts).total()
        return moved / 2 if RECORDS[metric] else moved
    return 0


def _metric(measurement: Any) -> str:
    """Return the name of the input metric without its parameters."""
    return str(measurement.input_metric).partition("(")[0]


def _short_message(error: Exception) -> str:
    """Return the first line of OpenDP's message, without the trace of its compiled code."""
    return str(getattr(error, "message", None) or error).splitlines()[0]
