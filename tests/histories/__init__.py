"""Recorded logs, kept for ever: each must fold to the digests it was recorded with."""
