"""Failures of a site that its users can mend; each says in one line what and why."""

from __future__ import annotations


class SettingsError(Exception):
    """Settings that cannot be used; `str(error)` names them, without their values."""


class BrokerError(Exception):
    """The brokers cannot be reached or refuse; `str(error)` says which and why.

    `is_passing` if a broker that restarts answers so.
    """

    def __init__(self, problem: str, *, is_passing: bool = False) -> None:
        super().__init__(problem)
        self.is_passing = is_passing
