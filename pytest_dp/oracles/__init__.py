"""Bounds on the loss of a pair without bets: alignment of draws, checked by replays.

If ``M(D; z) == M(D'; z + s)`` for all draws z, then the loss between the outputs on D and on D' is
at most that between the laws of z and z + s, whatever happens to the numbers afterwards. A shift s
is found by looking at what draws are added to (`tracked`, `shifts`), checked by replays with
numbers from the laws and from their tails (`handing_out`, `checking`), and turned
into a bound (`shifts`); `direction` and `alignment` put these together.

Where all outcomes can be enumerated, the loss is exact: draws are deferred numbers (`deferred`,
`open_numbers`), of which each comparison takes one part, and each path is run once (`branching`,
`enumerating`). Independent parts of an output are enumerated one by one (`factors`).

Sources: Zhang, Kifer, "LightDP", POPL 2017; Wang, Ding, Wang, Kifer, Zhang, "CheckDP", CCS 2020.
"""
