"""Losses in closed form, of mechanisms whose outputs are simple functions of independent draws.

The draws of a run are *traced* (`tracing`): the mechanism gets objects that record arithmetic, as
sums of draws (`affine`) or numbers with few values (`finite`), in Python and in arrays (`arrays`).
Where it compares draws, it is run once for each answer. Each run ends in an `Outcome` (`outcomes`):
outputs as functions of draws of known laws (`laws`), and the conditions on draws under which it
comes. The outcomes on two inputs are compared in independent parts (`parts`, `comparing`): linear
functions of draws in closed form (`linear`), finite ones by their probabilities, and what depends
on comparisons by one-dimensional integrals (`conditioned`, `mixtures`).

Mechanisms that are not of that kind are refused, with a reason.
"""
