"""One instrumented generator: what a mechanism asks of its random numbers, and what it is given.

A mechanism is run with *stand-ins* for its generators (`stand_ins`, `modules`). Each draw becomes a
`Request`, which an `Instrument` answers: with numbers that it keeps (`tape.Tape`), with the centre
of the noise, with the same rows for two inputs, or with every value in turn.

What is compiled cannot be seen: code in Rust, C, numba or torch that has generators of its own.
"""
