"""The papers' experiments as commands."""
