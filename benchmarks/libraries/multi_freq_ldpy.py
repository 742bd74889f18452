"""The documentation calls `epsilon` of a client a "privacy guarantee"; for longitudinal clients,
`eps_1` guards a single report. The claim is local differential privacy, for any two values, or any
two of the "user's true tuple of values". Hash functions are public.
"""

# requirements: multi-freq-ldpy==0.2.5 xxhash==3.5.0

from multi_freq_ldpy.long_freq_est import L_GRR, L_OSUE, L_OUE, L_SOUE, L_SUE
from multi_freq_ldpy.long_freq_est.dBitFlipPM import dBitFlipPM_Client
from multi_freq_ldpy.mdim_freq_est import RSpFD_solution as fake
from multi_freq_ldpy.mdim_freq_est import SMP_solution as sampled
from multi_freq_ldpy.mdim_freq_est import SPL_solution as split
from multi_freq_ldpy.pure_frequency_oracles import ADP, GRR, HE, LH, SS, UE

from pytest_dp import Claimed, claims, values

items, ends = [0, 1, 2, 3], [((0, 0), (1, 1)), ((0, 2), (1, 1))]


def one(client, *more, k=4, eps=1.0, **claim):
    """Of one value of `k`."""
    client(0, k, *more)  # compiles it
    return Claimed(lambda x: client(x, k, *more), eps=eps, inputs=values(items), **claim)


def long(client, *more):
    return one(client, 2.0, 1.0, *more)


def many(client, *more, pairs=ends, **claim):
    """Of two attributes, of three values each."""
    return Claimed(lambda x: client(x, [3, 3], 2, 1.0, *more), eps=1.0, pairs=pairs, **claim)


multi_freq_ldpy = claims(
    {
        "GRR": one(GRR.GRR_Client, 1.0),
        "SUE": one(UE.UE_Client, 1.0, False),
        "OUE": one(UE.UE_Client, 1.0, True),
        "HE": one(HE.HE_Client, 1.0),
        "OLH": one(LH.LH_Client, 1.0),
        "ADP": one(ADP.ADP_Client, 1.0),
        "SS": one(SS.SS_Client, 1.0, k=8, max_seconds=60.0),
        "SS, sorted": one(lambda *given: sorted(SS.SS_Client(*given)), 1.0, k=8),
        "L-GRR": long(L_GRR.L_GRR_Client),
        "L-SUE": long(L_SUE.L_SUE_Client),
        "L-OUE": long(L_OUE.L_OUE_Client),
        "L-OSUE": long(L_OSUE.L_OSUE_Client),
        "L-SOUE": long(L_SOUE.L_SOUE_Client),
        "dBitFlipPM": one(dBitFlipPM_Client, 4, 2, 1.0),
        "SPL, GRR": many(split.SPL_GRR_Client),
        "SMP, GRR": many(sampled.SMP_GRR_Client),
        "RS+FD, GRR, one attribute": many(fake.RSpFD_GRR_Client, pairs=[((0, 0), (1, 0))]),
        "RS+FD, GRR": many(fake.RSpFD_GRR_Client, max_seconds=60.0),
    }
)
