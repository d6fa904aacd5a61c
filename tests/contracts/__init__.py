"""Tests of the contracts: what they accept, refuse, write, and publish."""
