"""The map of a measurement promises its value, in the output measure, for any two inputs of the
input domain with a distance of at most `d_in` in the input metric. Neighbouring datasets differ by
one record more.
"""

# requirements: opendp==0.16.0

import opendp.prelude as dp
import pytest

from pytest_dp import PrivacyViolation, claims, values
from pytest_dp.libraries.opendp import claimed

dp.enable_features("contrib")
whole, real = dp.atom_domain(T=int), dp.atom_domain(T=float, nan=False)
one_int, one_float = dp.absolute_distance(T=int), dp.absolute_distance(T=float)
ints, small = dp.vector_domain(whole), dp.vector_domain(dp.atom_domain(T=int, bounds=(0, 5)))
rows, bounded = (ints, dp.symmetric_distance()), (small, dp.symmetric_distance())
keys = dp.map_domain(dp.atom_domain(T=str), whole)
by_key1, by_key2 = dp.l01inf_distance(one_int), dp.l02inf_distance(one_int)
three = dp.vector_domain(whole, size=3)
gauss = dp.m.make_gaussian(three, dp.l2_distance(T=int), scale=1.0)
lists = {"inputs": [[1, 2], [1, 2, 2], [5, 1, 2, 0]]}
scores = {"pairs": [([1, 2, 3], [2, 1, 2]), ([1, 1, 1], [2, 1, 1])]}
known = pytest.mark.xfail(strict=True, raises=PrivacyViolation, reason="opendp/opendp#2922")
found = {"pairs": [({"a": 1}, {})], "max_seconds": 60.0, "marks": known}
counts = rows >> dp.t.then_count_by_categories(categories=[0, 1, 2])
tulap = dp.m.make_canonical_noise(real, one_float, 1.0, (1.0, 0.01))
best = dp.m.make_noisy_max(ints, dp.linf_distance(T=int), dp.max_divergence(), scale=2.0)

opendp = claims(
    {
        "Laplace, float": claimed(dp.m.make_laplace(real, one_float, scale=1.0), 1.0),
        "Laplace, int": claimed(dp.m.make_laplace(whole, one_int, scale=1.0), 1),
        "geometric": claimed(dp.m.make_geometric(whole, one_int, scale=1.0), 1),
        "Laplace, vector": claimed(dp.m.make_laplace(three, dp.l1_distance(T=int), scale=1.0), 1),
        "Gaussian, vector": claimed(gauss, 1),
        "Gaussian, all deltas": claimed(dp.c.make_zCDP_to_approxDP(gauss), 1),
        "Gaussian, delta": claimed(dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gauss), 1e-3), 1),
        "canonical noise": claimed(tulap, 1.0),
        "coin": claimed(dp.m.make_randomized_response_bool(prob=0.75)),
        "one of four": claimed(
            dp.m.make_randomized_response([0, 1, 2, 3], prob=0.5), inputs=values(range(4))
        ),
        "noisy max": claimed(best, 1, **scores),
        "count": claimed(rows >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0), **lists),
        "sum": claimed(bounded >> dp.t.then_sum() >> dp.m.then_laplace(scale=5.0), **lists),
        "histogram": claimed(counts >> dp.m.then_laplace(scale=1.0), **lists),
        "quantile": claimed(
            bounded >> dp.m.then_private_quantile(dp.max_divergence(), [1, 3, 5], 0.5, 1.0), **lists
        ),
        "Laplace threshold": claimed(
            dp.m.make_laplace_threshold(keys, by_key1, scale=1.0, threshold=2), (1, 1, 1), **found
        ),
        "Gaussian threshold": claimed(
            dp.m.make_gaussian_threshold(keys, by_key2, scale=1.0, threshold=2), (1, 1, 1), **found
        ),
    }
)
