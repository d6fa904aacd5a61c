"""Fuzzing of what reads bytes and texts from outside, and the inputs that once broke it."""
