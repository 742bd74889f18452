"""Run a mechanism many times: calling convention, seeds, hidden state, processes."""
