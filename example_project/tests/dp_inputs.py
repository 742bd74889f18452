"""Small example datasets for the audits: every pair of neighbours is derived from them.

Nobody at all, one patient at each extreme, and values that should be impossible: that is where
privacy bugs show.
"""

import numpy as np

ages = [[], [65], [30, 150]]
ages_of_a_ward = [[0], [120], [30, 65, 150]]
waits = [[], [0], [240], [20, 500]]
stays = [[], [365]]
costs = [[], [2_000_000]]
ages_and_costs = [[], [(65, 0)], [(30, 120), (90, 2_000_000)]]
vitals_of_a_ward = [[(80, 40, 40, 5)], [(300, 200, 200, 50)]]
towns = [[], ["Ulm"], ["Ulm"] * 30]
patients = [np.empty((0, 3)), np.array([[50.0, -20.0, 1]])]
