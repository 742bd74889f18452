"""Run a mechanism many times: calling convention, seeds, captured generators, processes."""
