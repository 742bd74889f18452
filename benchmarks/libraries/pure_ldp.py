"""`epsilon` of a client is its privacy budget. The claim is local differential privacy of the
report that `privatise` makes of one item, for any two items. For RAPPOR, `convert_f_to_eps`
computes the budget from `f`. Hash functions are public.
"""

# requirements: pure-ldp==1.2.0 scikit-learn==1.9.1 statsmodels==0.15.0 xxhash==3.5.0

import numpy as np
from pure_ldp import frequency_oracles as fo
from pure_ldp import heavy_hitters as hh
from pure_ldp.core import generate_hash_funcs

from benchmarks.libraries.pure_ldp_calls import hashes_of
from pytest_dp import Claimed, claims, values

eps, d = 1.0, 4
hashes = generate_hash_funcs(2, 8)
signed = [(generate_hash_funcs(1, 8)[0], generate_hash_funcs(2, 2)[1])]
rappor = fo.RAPPORClient(f=0.5, m=8, hash_funcs=[hashes, hashes], num_of_cohorts=2)
hadamard = fo.HadamardMechClient(eps, d, t=2)


def entry(client, items=range(1, d + 1), eps=eps, **more):
    return Claimed(client.privatise, eps=eps, inputs=values(list(items)), **more)


def local_hashing(**more):
    client = fo.LHClient(eps, d, **more)
    return entry(client, features=hashes_of(client))


pure_ldp = claims(
    {
        "DE": entry(fo.DEClient(eps, d)),
        "SUE": entry(fo.UEClient(eps, d)),
        "OUE": entry(fo.UEClient(eps, d, use_oue=True)),
        "HE": entry(fo.HEClient(eps, d)),
        "BLH": local_hashing(),
        "OLH": local_hashing(use_olh=True),
        "FLH": entry(fo.FastLHClient(eps, d, k=2, use_olh=True)),
        "Hadamard response": entry(fo.HadamardResponseClient(eps, d, None)),
        "Hadamard response, eps 2": entry(
            fo.HadamardResponseClient(2.0, d, np.random.default_rng(1).permutation(d)), eps=2.0
        ),
        "Hadamard mechanism": entry(hadamard, max_seconds=60.0),
        "Hadamard mechanism, as a list": Claimed(
            lambda x: list(hadamard.privatise(x)), eps=eps, inputs=values([1, 2, 3, 4])
        ),
        "CMS": entry(fo.CMSClient(eps, hashes, 8)),
        "HCMS": entry(fo.CMSClient(eps, hashes, 8, is_hadamard=True)),
        "PCS": entry(fo.PCSClient(eps, 1, 8, signed)),
        "sketch response": entry(fo.SketchResponseClient(eps, 8, hashes)),
        "RAPPOR": entry(rappor, eps=rappor.convert_f_to_eps(0.5, 2), max_seconds=60.0),
        "PEM": entry(hh.PEMClient(eps, 1, 4, 1), items=["0110", "1001", "1111"]),
        "tree histogram": entry(hh.TreeHistClient(eps, 1, 4), items=["0110", "1001", "1111"]),
    }
)
