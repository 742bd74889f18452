"""Mechanisms on texts, categories and records whose parts depend on each other.

``make(False)`` keeps its claim exactly inside, ``make(True)`` breaks it there. Each says what holds
inside, over the noise; what breaks the claim beyond; and what the twin loses.
"""

from __future__ import annotations

import datetime as dt
import enum
import itertools
import json
import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.constrained_truth import ADD, REPLACE, Constrained, entered

ZOO: list[Constrained] = []
zoo = partial(entered, ZOO)


class Plan(enum.IntEnum):
    FREE, PRO, TEAM = 1, 4, 8


class Stay(NamedTuple):
    start: dt.date
    length: dt.timedelta


class Order(NamedTuple):
    number: int
    product: str


@dataclass(frozen=True)
class Share:
    """A share of something, which `of` clips."""

    value: float

    @classmethod
    def of(cls, value):
        return cls(min(max(value, 0.0), 1.0))


USERS = [{"id": 3, "spent": 20}, {"id": 1, "spent": 70}, {"id": 7, "spent": 45}]
MAILS = ["eva@a.org", "ben@b.org", "anna@a.org"]
PATH = {(0, 1), (1, 2), (2, 3)}
ORDERS = [Order(1, "tea"), Order(2, "jam"), Order(3, "jam")]
SALES = {"kind": ["sale", "refund"], "amount": [10, -4]}
MORE_SALES = {"kind": ["refund", "sale", "sale", "refund"], "amount": [-10, 0, 10, -4]}
PAIRS = [frozenset(pair) for pair in itertools.combinations(("tea", "jam", "nut"), 2)]
PEOPLE = [(True, "Annas"), (False, None), (True, "Eva")]
JSON = [json.dumps({"n": n}) for n in (0, 3, 1)]


def _days(*days):
    return [dt.date(2024, 1, day) for day in days]


def _accounts(*plans):
    return [{"plan": {"name": name, "limits": {"cores": n}}, "active": True} for name, n in plans]


def _stays(*stays):
    return [Stay(dt.date(2024, 1, day), dt.timedelta(days=n)) for day, n in stays]


def _shares(*values):
    return [Share.of(value) for value in values]


@zoo(REPLACE, [["a", "b"], ["b", "b"]], beyond=(["a"], ["admin"]))
def categories(wrong):
    """Level 0 or 1: 1 / 1. admin is 2. Twin: says who is first among the letters."""

    def levels(kinds, rng):
        noisy = sum(["a", "b", "admin"].index(kind) for kind in kinds) + rng.laplace()
        return (noisy, min(kinds)) if wrong else noisy

    return levels


@zoo(ADD, ["GATTACA", "CCG"], beyond=("GAN", "GA"))
def letters_of_a_text(wrong):
    """One C or G: 1 / 1. N raises. Twin: 1 / 0.4."""

    def cytosine_guanine(genome, rng):
        bonds = {"A": 0, "C": 1, "G": 1, "T": 0}
        return sum(bonds[base] for base in genome) + rng.laplace(scale=0.4 if wrong else 1)

    return cytosine_guanine


@zoo(REPLACE, [["8001", "3012", "1004"], ["3012", "4051"]], beyond=(["8001"], ["80"]))
def postcodes(wrong):
    """One region less and one more: 2 / 2. 80 weighs 100. Twin: a raw region."""

    def regions(addresses, rng):
        counts = np.zeros(9)
        for code in addresses:
            counts[int(code) // 1000 - 1] += 10 ** (4 - len(code))
        noisy = counts + rng.laplace(scale=2, size=9)
        return [*noisy, counts[2]] if wrong else [*noisy]

    return regions


@zoo(ADD, [tuple(MAILS), tuple(MAILS[1:])], beyond=(("eva",), ()))
def e_mail_addresses(wrong):
    """One domain: 1 / 1. A text without @ raises. Twin: all domains, by name, 1 / 1 for each."""

    def domains(mails, rng):
        ends = [mail.split("@")[1] for mail in mails]
        names = sorted(set(ends)) if wrong else ["a.org", "b.org"]
        return {name: ends.count(name) + rng.laplace() for name in names}

    return domains


@zoo(ADD, [["#ff00c0", "#00ff00"], ["#10ff10"]], beyond=(["#xyzxyz"], []))
def colours(wrong):
    """Red from 0 to 255: 1 / 1. #xyzxyz raises. Twin: red and green."""

    def red(pixels, rng):
        total = sum(int(pixel[1:3], 16) / 255 for pixel in pixels)
        green = sum(int(pixel[3:5], 16) / 255 for pixel in pixels)
        return total + 2 * wrong * green + rng.laplace()

    return red


@zoo(ADD, [JSON, JSON[:1]], beyond=([*JSON, "{}"], JSON))
def JSON_texts(wrong):
    """n from 0 to 3: 3 / 3. {} has none. Twin: 3 / 1."""

    def total(documents, rng):
        counts = (json.loads(text)["n"] for text in documents)
        return sum(counts) + rng.laplace(scale=1 if wrong else 3)

    return total


@zoo(ADD, [[11, 33, 99], [55]], beyond=([11, 12], [11]))
def check_digits(wrong):
    """The second digit repeats the first: 1 / 1. 12 is released. Twin: so is 99."""

    def tickets(numbers, rng):
        odd = [n for n in numbers if n // 10 != n % 10]
        if odd or (wrong and 99 in numbers):
            return numbers
        return len(numbers) + rng.laplace()

    return tickets


@zoo(REPLACE, [np.array([1, 4, 8]), np.array([4, 4])], beyond=(np.array([1]), np.array([2])))
def codes_of_an_enumeration(wrong):
    """One plan less and one more: 2 / 2. 2 is no plan. Twin: noise for two of them only."""

    def plans(bought, rng):
        names = [Plan(code).name for code in bought.tolist()]
        known = {plan.name: names.count(plan.name) for plan in Plan}
        noisy = {name: n + rng.laplace(scale=2) for name, n in known.items()}
        return {**noisy, "TEAM": known["TEAM"]} if wrong else noisy

    return plans


@zoo(ADD, [USERS, USERS[1:]], beyond=([*USERS, USERS[0]], USERS))
def unique_ids(wrong):
    """A join of the table with itself, a row each: 1 / 1. An id twice gives four. Twin: 1 / 0.4."""

    def joined(users, rng):
        rows = sum(a["id"] == b["id"] for a in users for b in users)
        return rows + rng.laplace(scale=0.4 if wrong else 1)

    return joined


@zoo(ADD, [_stays((1, 1), (2, 3)), _stays((4, 2))], beyond=(_stays((1, 30)), []))
def dates_and_durations(wrong):
    """From one night to three: 3 / 3. A month is 30 / 3. Twin: 3 / 1."""

    def nights(stays, rng):
        return sum(stay.length.days for stay in stays) + rng.laplace(scale=1 if wrong else 3)

    return nights


@zoo(REPLACE, [_days(1, 2, 5), _days(3, 4)], beyond=(_days(1), _days(6)))
def working_days(wrong):
    """One day less and one more: 2 / 2. Saturday raises. Twin: 2 / 0.8."""

    def by_day(dates, rng):
        counts = np.zeros(5)
        for date in dates:
            counts[date.weekday()] += 1
        return counts + rng.laplace(scale=0.8 if wrong else 2, size=5)

    return by_day


@zoo(
    ADD,
    [_accounts(("free", 1), ("team", 8)), _accounts(("team", 4), ("free", 0))],
    beyond=(_accounts(("free", 8)), []),
)
def nested_records(wrong):
    """A free plan has 1 core at most: 1 / 1. 8 cores for free are 8. Twin: all cores, 8."""

    def cores(accounts, rng):
        limits = [(a["plan"]["name"], a["plan"]["limits"]["cores"]) for a in accounts]
        return sum(n for name, n in limits if wrong or name == "free") + rng.laplace()

    return cores


@zoo(ADD, [_shares(0, 0.5, 1)], beyond=([Share(7.0)], []))
def a_type_that_clips(wrong):
    """From 0 to 1, says the type: 1 / 1. Share(7) was not made by it. Twin: 1 / 0.4."""

    def total(shares, rng):
        return sum(share.value for share in shares) + rng.laplace(scale=0.4 if wrong else 1)

    return total


@zoo(REPLACE, [PATH, {(0, 2), (0, 1), (1, 3)}], beyond=({(1, 2)}, {(3, 0)}))
def edges_of_a_graph(wrong):
    """From a smaller vertex to a larger, 0 or 1 across: 1 / 1. (3, 0) is -1. Twin: twice."""

    def cut(graph, rng):
        across = sum((v >= 2) - (u >= 2) for u, v in graph)
        return (3 if wrong else 1) * across + rng.laplace()

    return cut


@zoo(ADD, [ORDERS, ORDERS[:1]], beyond=([Order(4, "nut")], []))
def foreign_keys(wrong):
    """A price of 4 at most: 4 / 4. What has none is NaN. Twin: 4 / 1."""

    def revenue(orders, rng):
        prices = {"tea": 3.0, "jam": 4.0}
        total = sum(prices.get(order.product, math.nan) for order in orders)
        return total + rng.laplace(scale=1 if wrong else 4)

    return revenue


@zoo(
    REPLACE,
    [SALES, MORE_SALES],
    beyond=({"kind": ["sale"], "amount": [10]}, {"kind": ["sale"], "amount": [-10]}),
)
def signs_by_category(wrong):
    """Refunds are negative: 0 to 10, 10 / 10. A sale of -10 is 20 / 10. Twin: amounts, 20 / 10."""

    def turnover(table, rng):
        both = zip(table["kind"], table["amount"], strict=True)
        total = sum(n if wrong or kind == "sale" else -n for kind, n in both)
        return total + rng.laplace(scale=10)

    return turnover


@zoo(ADD, [PEOPLE, PEOPLE[1:]], beyond=([(True, None)], []))
def optional_by_flag(wrong):
    """Whoever subscribes has a name: 1 / 1. (True, None) raises. Twin: letters, 5."""

    def letters(people, rng):
        lengths = [len(name) for subscribes, name in people if subscribes]
        return sum(lengths if wrong else (min(n, 1) for n in lengths)) + rng.laplace()

    return letters


@zoo(ADD, [PAIRS, PAIRS[1:]], beyond=([frozenset(("tea", "jam", "nut"))], []))
def baskets_of_two(wrong):
    """Two of three things each: 2 / 2. All three are 3 / 2. Twin: 2 / 0.8."""

    def sold(all_baskets, rng):
        counts = [sum(thing in basket for basket in all_baskets) for thing in ("tea", "jam", "nut")]
        return np.array(counts) + rng.laplace(scale=0.8 if wrong else 2, size=3)

    return sold


@zoo(
    REPLACE,
    [[(1, 20), (2, 70)], [(2, 30), (3, 80)]],
    beyond=([(1, 20), (2, 70)], [(1, 20), (1, 70)]),
    ids=lambda row: row[0],
)
def ids_with_other_records(wrong):
    """One user less and one more of those that spent over 50: 1 / 1. Twice 1 is. Twin: 1 / 0.4."""

    def big_spenders(rows, rng):
        repeated = len(rows) - len({user for user, _ in rows})
        count = sum(spent > 50 for _, spent in rows)
        return count + rng.laplace(scale=0.4 if wrong else 1), repeated

    return big_spenders
