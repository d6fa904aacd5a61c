"""Settings from the environment; secrets are never printed."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from aiokafka.helpers import create_ssl_context
from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from processor.app.errors import SettingsError
from processor.app.gate_settings import GateSettings
from processor.app.interpreter_settings import INTERPRETER_PREFIX, InterpreterSettings
from processor.app.setting_kinds import (
    WINDOW_DAYS_MAX,
    Brokers,
    Group,
    Instance,
    Seconds,
    TenantIds,
)
from replay.bucket_path import URL_PATTERN
from schemas.wire import problem_of

KAFKA_PREFIX = "STANDFAST_KAFKA_"
WORKER_PREFIX = "STANDFAST_WORKER_"


class SecurityProtocol(StrEnum):
    """How connections to the brokers are protected."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def sasl(self) -> bool:
        """Whether a user name and a password are asked for."""
        return self.name.startswith("SASL")

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.name.endswith("SSL")


class SaslMechanism(StrEnum):
    """How a user name and a password are given."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class LogLevel(StrEnum):
    """From what on something is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """The level as the standard library counts it."""
        return logging.getLevelNamesMapping()[self.name]


class KafkaSettings(BaseSettings):
    """Where the brokers are and how to connect: STANDFAST_KAFKA_BOOTSTRAP and so on.

    Without `ssl_cafile` the authorities of the system are trusted. `ssl_certfile` and `ssl_keyfile`
    are for brokers that ask clients for a certificate.
    """

    model_config = SettingsConfigDict(
        env_prefix=KAFKA_PREFIX,
        env_ignore_empty=True,
        frozen=True,
        hide_input_in_errors=True,
    )

    bootstrap: Brokers
    """HOST:PORT, or several with commas between them."""
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl_mechanism: SaslMechanism = SaslMechanism.PLAIN
    username: str | None = None
    password: SecretStr | None = None
    ssl_cafile: Path | None = None
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    ssl_keyfile_password: SecretStr | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.security_protocol.sasl and (self.username is None or self.password is None):
            raise ValueError(f"{self.security_protocol} needs a username and a password")
        if (self.username or self.password) and not self.security_protocol.sasl:
            raise ValueError(f"{self.security_protocol} sends no username and no password")
        return self

    def ssl_context(self) -> ssl.SSLContext | None:
        """What the TLS connection trusts and shows. Raises SettingsError."""
        if not self.security_protocol.tls:
            return None
        password = self.ssl_keyfile_password
        try:
            context: ssl.SSLContext = create_ssl_context(
                cafile=self.ssl_cafile,
                certfile=self.ssl_certfile,
                keyfile=self.ssl_keyfile,
                password="" if password is None else password.get_secret_value(),
            )
        except OSError as unreadable:  # ssl.SSLError is one
            names = [self.ssl_cafile, self.ssl_certfile, self.ssl_keyfile]
            files = ", ".join(str(name) for name in names if name is not None)
            raise SettingsError(f"{files or 'TLS'}: {unreadable.strerror}") from unreadable
        return context

    def client_options(self) -> dict[str, Any]:
        """The arguments that every client of aiokafka takes. Raises SettingsError."""
        options: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": self.security_protocol.value,
            "ssl_context": self.ssl_context(),
        }
        if self.security_protocol.sasl:
            assert self.password is not None
            options |= {
                "sasl_mechanism": self.sasl_mechanism.value,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password.get_secret_value(),
            }
        return options


class WorkerSettings(GateSettings):
    """How a worker works: STANDFAST_WORKER_GROUP and so on.

    `calls_max` bounds the calls to the model that run at a time, `calls_per_tenant_max` those of
    one tenant; `in_hand_max` the messages of one partition between delivery and acknowledgement;
    `records_max` the records of the conversations in memory. `instance` names the worker in its
    group, so that a restart within the session's time-out moves no partition. `replication` is what
    the topics are checked for; `fetch_wait_ms` how long the broker may hold a fetch until messages
    come: what comes meanwhile for a partition that is not part of the fetch waits as long.
    The log has one line for each event from level info on, with the claims only if `log_claims`.
    `checkpoint_seconds` lie between checkpoints for other workers, which go to the topic
    `snapshots`, or to `checkpoint_folder`, which all workers must see, or to `checkpoint_bucket`,
    `s3://BUCKET/PREFIX`.
    `tenants` is a file with what holds for each: see `tenants.py`. The verdicts and alerts of the
    `metric_tenants` are counted under their names, those of all others together.
    With a `key_file` what is kept for ever is sealed; topics must then lose what is in the clear
    within `erasure_window_days`.
    What it serves over HTTP is set by the fields of `GateSettings`.
    """

    model_config = SettingsConfigDict(
        env_prefix=WORKER_PREFIX, env_ignore_empty=True, frozen=True, hide_input_in_errors=True
    )

    group: Group = "standfast"
    instance: Instance | None = None
    store: Path = Path("standfast-worker.duckdb")
    calls_max: int = Field(default=64, ge=1)
    calls_per_tenant_max: int = Field(default=16, ge=1)
    in_hand_max: int = Field(default=2_000, ge=1)
    records_max: int = Field(default=500_000, ge=1)
    recovery_seconds_max: Seconds = 1_800.0
    drain_seconds_max: Seconds = 30.0
    alert_tenants: TenantIds = frozenset()
    metric_tenants: TenantIds = frozenset()
    replication: int = Field(default=3, ge=1, le=100)
    fetch_wait_ms: int = Field(default=20, ge=1, le=30_000)
    log_level: LogLevel = LogLevel.INFO
    log_claims: bool = False
    checkpoint_seconds: Seconds = 60.0
    checkpoint_folder: Path | None = None
    checkpoint_bucket: str | None = Field(default=None, pattern=URL_PATTERN)
    tenants: Path | None = None
    key_file: Path | None = None
    erasure_window_days: int | None = Field(default=None, ge=1, le=WINDOW_DAYS_MAX)

    @model_validator(mode="after")
    def _nothing_in_the_clear(self) -> Self:
        if self.key_file is not None and self.log_claims:
            raise ValueError("log_claims would write what key_file seals into the log")
        return self

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.checkpoint_folder is not None and self.checkpoint_bucket is not None:
            raise ValueError("checkpoints go to a checkpoint_folder or a checkpoint_bucket")
        return self


def kafka_settings(bootstrap: str | None = None) -> KafkaSettings:
    """The environment's settings, with another address if one is given. Raises SettingsError."""
    given = {} if bootstrap is None else {"bootstrap": bootstrap}
    if bootstrap is None and not os.environ.get(f"{KAFKA_PREFIX}BOOTSTRAP"):
        raise SettingsError(f"give --bootstrap HOST:PORT, or set {KAFKA_PREFIX}BOOTSTRAP")
    with _naming(KAFKA_PREFIX):
        return KafkaSettings(**given)  # type: ignore[arg-type] # the rest is in the environment


def worker_settings(given: Mapping[str, Any]) -> WorkerSettings:
    """The environment's settings, with others if some are given. Raises SettingsError."""
    with _naming(WORKER_PREFIX):
        return WorkerSettings(**given)


def interpreter_settings(given: Mapping[str, Any]) -> InterpreterSettings:
    """The environment's settings, with others if some are given. Raises SettingsError."""
    with _naming(INTERPRETER_PREFIX):
        return InterpreterSettings(**given)


@contextmanager
def _naming(prefix: str) -> Iterator[None]:
    """Turn what is wrong with settings into one line that names the first of them."""
    try:
        yield
    except ValidationError as invalid:
        first = invalid.errors(include_input=False, include_url=False, include_context=False)[0]
        name = "_".join(part for part in first["loc"] if isinstance(part, str)).upper()
        name = prefix + name.removeprefix(prefix)  # a field with another name beside is called so
        raise SettingsError(f"{name.rstrip('_')}: {problem_of(first)}") from invalid
