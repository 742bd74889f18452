"""Search and test on the same samples: which pair of inputs is next, what is bet on, when to stop.

`auditors.betting_audit` plays it on a claim. In the order in which a batch goes through it:

1. `pair_queue` picks the pair of inputs whose edge may be largest.
2. The `detector` of that pair, fitted on its past batches, sorts outputs into a few bins, and the
   ledger (`statistics.ledger`) makes a portfolio of bets on these bins.
3. The batch is drawn, and the portfolio is paid out by it.
4. The batch joins the past. Now and then the detector is fitted anew (`attacks.additive`).

Nothing here reads a clock: what is drawn depends on counts and outputs alone.
"""
