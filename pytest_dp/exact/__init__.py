"""Exact distributions of mechanisms whose randomness is finite, or nearly so: draws that branch.

A mechanism is run once for each way that it can go (`enumerating`). What it draws is a value that
is known only as far as it has been asked (`lazy`): comparing it with a number splits what is left
of it, and either part is a way to go.
"""
