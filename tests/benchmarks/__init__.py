"""Benchmarks: ratios measured in one run, never assertions about time."""
