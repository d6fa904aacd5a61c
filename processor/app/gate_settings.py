"""Settings of a worker's HTTP server, part of the worker's settings."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings

from processor.app.setting_kinds import Origin, Origins, PerSecond


class GateSettings(BaseSettings):
    """Where a worker listens, who may ask, and how much.

    Without `listen_port` there is no server. Without `tokens` (a file of what `standfast token`
    prints) it says how the worker is and answers no question about conversations, unless
    `open_gate` is set, which needs a loopback address. `canonical_url` is where the other workers
    reach this one, and `peers` are the only addresses to which it forwards a request. Requests are
    counted by tenant, those without a valid token by the address that they come from.
    """

    listen_host: str = "127.0.0.1"
    listen_port: int | None = Field(default=None, ge=0, le=65_535)
    tokens: Path | None = None
    open_gate: bool = False
    canonical_url: Origin | None = None
    peers: Origins = frozenset()
    body_bytes_max: int = Field(default=262_144, ge=1_024)
    claims_max: int = Field(default=64, ge=1)
    requests_per_second: PerSecond = 50.0
    requests_burst: int = Field(default=100, ge=1)
    wrong_tokens_per_second: PerSecond = 1.0
    wrong_tokens_burst: int = Field(default=100, ge=1)
    waiting_max: int = Field(default=512, ge=1)
    waiting_per_tenant_max: int = Field(default=128, ge=1)

    @model_validator(mode="after")
    def _open_to_this_machine_only(self) -> Self:
        if self.open_gate and not is_loopback(self.listen_host):
            raise ValueError("open_gate lets in everybody: listen_host must be a loopback address")
        if self.open_gate and self.tokens is not None:
            raise ValueError("open_gate lets in everybody: tokens would have no effect")
        return self


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
