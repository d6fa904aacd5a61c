"""Failures that a user of the command line can cause."""

from __future__ import annotations


class BadInputError(Exception):
    """Input or arguments that cannot be used; `str(error)` is one line that says where and why."""
