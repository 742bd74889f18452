"""Readers of further features of outputs, which `pytest_dp.registry` finds by name."""
