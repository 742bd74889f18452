"""The betting loop: pairs, detectors, the models behind them, and bets."""
