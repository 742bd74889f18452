"""Search for inputs: where a claim may be broken, and on how small ones it still is."""
