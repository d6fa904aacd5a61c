"""Tests of the plausibility model."""
