"""pure-ldp: the events by which claims of the pack are broken, counted by hand."""

import math

from pure_ldp import frequency_oracles as fo
from pure_ldp.core import generate_hash_funcs

from benchmarks.libraries.counting import counted, show

hashes = generate_hash_funcs(2, 8)
rappor = fo.RAPPORClient(f=0.5, m=8, hash_funcs=[hashes, hashes], num_of_cohorts=2)
hadamard = fo.HadamardMechClient(1.0, 4, t=2)
set_for = [{function(str(item - 1)) for function in hashes} for item in range(1, 5)]
item, other = next((a, b) for a in range(4) for b in range(4) if set_for[a] - set_for[b])  # from 0
bit = min(set_for[item] - set_for[other])

show(
    {
        "RAPPOR": counted(
            rappor.privatise,
            (other + 1, item + 1),
            lambda report: report[0][bit] == 0,
            lambda q: math.exp(rappor.convert_f_to_eps(0.5, 2)) * q,
            why="Bits that are set are never cleared: only others are perturbed.",
        ),
        "Hadamard mechanism": counted(
            hadamard.privatise,
            (2, 1),
            lambda report: isinstance(report, list) and (1, -1) in report,
            lambda q: math.e * q,
            why="What is true is returned as a list, what is perturbed as a zip.",
        ),
    }
)
