"""Losses in closed form, of mechanisms whose outputs are simple functions of independent draws.

The draws of a run are *traced* (`tracing`): numbers that are known as sums of draws (`values`),
and carry on as such through arithmetic, in Python and in arrays (`arrays`). Where a mechanism
compares draws, every way is gone. What is left of a run is an `Outcome` (`outcomes`): outputs as
functions of draws of known laws (`laws`), and the conditions under which it goes that way. Two
lists of outcomes are compared part by part (`comparing`): linear functions of draws in closed form
(`linear`), finite ones by their probabilities, and what depends on conditions by one-dimensional
integrals (`conditioned`).

What is not of that kind is refused, with a reason.
"""
