"""Hostile utterances of our own, each with the reply of a model that does what it is told."""
