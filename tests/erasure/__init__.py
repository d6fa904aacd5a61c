"""Erasure: what is forgotten can be read nowhere."""
