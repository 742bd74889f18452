"""Describe what came out of a mechanism: tables of leaves, readable events."""
