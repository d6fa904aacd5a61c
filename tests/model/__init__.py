"""Measurements with a model that answers for real."""
