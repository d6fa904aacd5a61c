"""The experiments as commands."""
