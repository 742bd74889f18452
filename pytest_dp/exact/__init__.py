"""Exact distributions of mechanisms whose randomness is finite, or nearly so: draws that branch.

A mechanism is run once for each path that it can take (`enumerating`). A draw is a set of possible
values (`open_draw`), and what is computed from it is lazy (`lazy`): a comparison with a number
splits the set in two, and the run is repeated for the other part.
"""
