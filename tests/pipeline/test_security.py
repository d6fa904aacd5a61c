"""Brokers that ask for a password, with and without TLS, are served as the settings say."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from processor.app.settings import KAFKA_PREFIX
from tests.cli.test_commands import standfast
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import StartKafka
from tests.kafka.security import Security

USER, WORD = "standfast", "a-secret-of-the-tests"
LINE = (
    b'{"conversation_id": "c", "utterance_id": "u", "speaker": "ann",'
    b' "at": "2026-03-01T02:31:00Z", "text": "hello"}\n'
)


def connect(monkeypatch: pytest.MonkeyPatch, kafka: Kafka, **changed: str) -> None:
    """Put what a client of this broker needs into the environment."""
    settings = {
        "bootstrap": kafka.bootstrap,
        "security_protocol": kafka.security.protocol,
        "username": USER,
        "password": WORD,
        **changed,
    }
    for name in [name for name in os.environ if name.startswith(KAFKA_PREFIX)]:
        monkeypatch.delenv(name)
    for name, value in settings.items():
        monkeypatch.setenv(f"{KAFKA_PREFIX}{name.upper()}", value)


def works() -> Iterator[tuple[int, bytes]]:
    """Status and complaint of one command after the other: create, check, produce, tail."""
    for arguments in (
        ("topics", "create", "--replication", "1", "--partitions", "2"),
        ("topics", "check", "--replication", "1"),
        ("produce", "-"),
        ("tail", "utterances", "--from-beginning", "--max", "1"),
    ):
        ran = standfast(*arguments, given=LINE)
        assert WORD.encode() not in ran.stdout + ran.stderr
        yield ran.returncode, ran.stderr


def refusal() -> str:
    """The one line that a command says when it cannot connect."""
    ran = standfast("topics", "check")
    assert ran.returncode == 2
    (line,) = ran.stderr.decode().splitlines()
    assert WORD not in line
    return line


def test_a_password_in_the_clear(start_kafka: StartKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """SASL/PLAIN: every command works with the password, and a wrong one is named as the cause."""
    kafka = start_kafka(security=Security("SASL_PLAINTEXT", users={USER: WORD}))
    connect(monkeypatch, kafka)
    assert list(works()) == [(0, b"")] * 4
    connect(monkeypatch, kafka, password="wrong")
    assert "Authentication failed" in refusal()


def test_a_password_under_tls(start_kafka: StartKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """SASL over TLS: every command works, and a broker that nobody vouches for is refused."""
    kafka = start_kafka(security=Security("SASL_SSL", users={USER: WORD}))
    cafile = str(kafka.security.cafile)
    connect(monkeypatch, kafka, ssl_cafile=cafile)
    assert list(works()) == [(0, b"")] * 4
    connect(monkeypatch, kafka)
    assert "CERTIFICATE_VERIFY_FAILED" in refusal()
    connect(monkeypatch, kafka, ssl_cafile=cafile, password="wrong")
    assert "Authentication failed" in refusal()
