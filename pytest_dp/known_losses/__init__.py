"""Losses that oracles find without a bet, and passes that rest on them."""
