"""Tests of the benchmark adapters, on samples of our own and on the published files."""
