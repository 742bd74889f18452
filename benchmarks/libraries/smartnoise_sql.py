"""The promise is `epsilon` and `delta` of a mechanism, for values that differ by `max_contrib`
records of that `sensitivity`, or lie within these bounds; for `approx_bounds` it is `epsilon`, for
lists that differ by one value. A query promises the result of `get_privacy_cost`, for tables that
differ by one person.
"""

# requirements: smartnoise-sql==1.0.10 setuptools==80.9.0

from snsql.sql._mechanisms import Gaussian, Laplace
from snsql.sql._mechanisms.approx_bounds import approx_bounds

from benchmarks.libraries.smartnoise_sql_calls import answered, reader
from pytest_dp import Claimed, add_remove_one, claims

rows = [(0, 1, "a"), (1, 2, "a"), (2, 5, "a")]
lists = {"inputs": [[1.0, 2.0, 2.0], [5.0, 0.5]], "neighbors": add_remove_one()}
gauss = {"delta": 0.01}


def released(kind, far=1.0, delta=0.0, **given):
    mechanism = kind(1.0, delta=delta, **given)
    promised = {"eps": 1.0, "delta": delta} if delta else {"eps": 1.0}
    return Claimed(lambda x: mechanism.release([x])[0], pairs=[(0.0, far)], **promised)


def shown(kind):
    """Whether a key is shown, by how many there are of it."""
    mechanism = kind(1.0, delta=0.01, sensitivity=1)
    mechanism.delta = 0.01  # as a reader sets it
    promised = {"eps": 1.0, "delta": 0.01, "pairs": [(n, n + 1) for n in range(6)]}
    return Claimed(lambda n: mechanism.release([n])[0] > mechanism.threshold, **promised)


def asked(query):
    eps, delta = map(float, reader(rows).get_privacy_cost(query))
    promised = {"eps": eps, "delta": delta, "pairs": [([*rows, (3, 5, "b")], rows)]}
    return Claimed(lambda data: answered(data, query), **promised)


smartnoise_sql = claims(
    {
        "Laplace": released(Laplace, sensitivity=1),
        "Laplace, bounds": released(Laplace, 5.0, lower=-5, upper=5),
        "Laplace, two records": released(Laplace, 2.0, sensitivity=1, max_contrib=2),
        "Gaussian": released(Gaussian, **gauss, sensitivity=1),
        "Gaussian, bounds": released(Gaussian, 5.0, **gauss, lower=-5, upper=5),
        "Gaussian, two records": released(Gaussian, 2.0, **gauss, sensitivity=1, max_contrib=2),
        "key shown, Laplace": shown(Laplace),
        "key shown, Gaussian": shown(Gaussian),
        "approx_bounds": Claimed(lambda values: approx_bounds(values, 1.0), eps=1.0, **lists),
        "count": asked("SELECT COUNT(*) AS n FROM t.t"),
        "sum": asked("SELECT SUM(x) AS n FROM t.t"),
        "count by key": asked("SELECT c, COUNT(*) AS n FROM t.t GROUP BY c"),
    }
)
