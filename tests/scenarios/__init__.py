"""Tests of the shipped scenarios: every one comes out as written down."""
