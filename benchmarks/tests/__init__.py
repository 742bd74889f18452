"""Tests of benchmarks: `make nightly` runs all of them, pull requests none."""
