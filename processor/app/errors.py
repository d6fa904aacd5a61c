"""Failures of a site that its users can mend; each says in one line what and why."""

from __future__ import annotations


class SettingsError(Exception):
    """Settings that cannot be used; `str(error)` names them, without their values."""


class BrokerError(Exception):
    """The brokers cannot be reached or refuse; `str(error)` says which and why."""
