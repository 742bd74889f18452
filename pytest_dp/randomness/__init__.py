"""Instrumented generators: requests of a mechanism for random numbers, and answers to them.

A mechanism is run with *stand-ins* for its generators (`stand_ins`, `modules`). Each draw becomes a
`Request`, which an `Instrument` answers: with numbers that it records (`tape.Tape`), with the
centre of the noise, with the same rows for two inputs, or with every value in turn (`branching`).

Compiled code with generators of its own (in Rust, C, numba or torch) is not seen.
"""
