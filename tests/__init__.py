"""Tests, one folder per package, and what they share."""
