"""Noiseless runs: how far one record moves the answer, in units of the noise that is drawn."""
