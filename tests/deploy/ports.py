"""Ports of this machine for what a test starts."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port on which nobody listens just now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
