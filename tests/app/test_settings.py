"""Connection settings come from the environment, are checked, and keep their secrets."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web

from processor.app.errors import SettingsError
from processor.app.settings import (
    KAFKA_PREFIX,
    interpreter_settings,
    kafka_settings,
    worker_settings,
)
from processor.app.web.server import listen

WORD = "correct horse battery"
SECRET = "secret"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith((KAFKA_PREFIX, "OPENAI_"))]:
        monkeypatch.delenv(name)


def given(monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """Put settings into the environment."""
    for name, value in settings.items():
        monkeypatch.setenv(f"{KAFKA_PREFIX}{name.upper()}", value)


def test_an_address_is_all_that_is_needed() -> None:
    """A broker in the clear needs nothing but its address."""
    assert kafka_settings("b:9092").client_options() == {
        "bootstrap_servers": "b:9092",
        "security_protocol": "PLAINTEXT",
        "ssl_context": None,
    }


def test_the_address_given_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given on the command line is taken; without it the environment is."""
    given(monkeypatch, bootstrap="there:1")
    assert kafka_settings().bootstrap == "there:1"
    assert kafka_settings("here:2").bootstrap == "here:2"


def test_a_password_is_passed_on_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets the password; neither text nor JSON of the settings hold it."""
    given(
        monkeypatch,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        username="ann",
        password=WORD,
    )
    settings = kafka_settings("b:9092")
    options = settings.client_options()
    assert options["sasl_plain_password"] == WORD
    assert options["sasl_plain_username"] == "ann"
    assert options["sasl_mechanism"] == "SCRAM-SHA-512"
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert WORD not in shown


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "give --bootstrap HOST:PORT, or set STANDFAST_KAFKA_BOOTSTRAP"),
        (
            {"bootstrap": "b:1", "security_protocol": WORD},
            "STANDFAST_KAFKA_SECURITY_PROTOCOL: Input should be",
        ),
        (
            {"bootstrap": "b:1", "security_protocol": "SASL_SSL", "password": WORD},
            "STANDFAST_KAFKA: SASL_SSL needs a username and a password",
        ),
        (
            {"bootstrap": "b:1", "username": "ann", "password": WORD},
            "STANDFAST_KAFKA: PLAINTEXT sends no username and no password",
        ),
    ],
)
def test_settings_that_do_not_fit_are_named_without_their_values(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], said: str
) -> None:
    """The error is one line with the name of the setting, and holds no value of any."""
    given(monkeypatch, **settings)
    with pytest.raises(SettingsError) as refused:
        kafka_settings()
    assert str(refused.value).startswith(said)
    assert WORD not in str(refused.value)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_bad_certificate_file_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    """A file of authorities that is missing, or holds none, is one line with its name."""
    cafile = tmp_path / "ca.pem"
    if content is not None:
        cafile.write_text(content)
    given(monkeypatch, security_protocol="SSL", ssl_cafile=str(cafile))
    with pytest.raises(SettingsError, match=r"ca\.pem: .+"):
        kafka_settings("b:1").client_options()


BAD_BROKERS = (":", ":::", "b:", "b:abc", "b:0", "b:65536", "b:-5", "b:٣", "[::1:9", "..:1", ",")
BAD_BROKERS += (f"{'x' * 64}:1", "a\nb:9", "a b:9", "http://b:9", "ann@b:9", "b:1,c:x")


@pytest.mark.parametrize("written", BAD_BROKERS)
def test_what_is_no_address_of_brokers_is_refused(written: str) -> None:
    """Before their client, which would fail with a traceback or ask somebody else."""
    with pytest.raises(SettingsError) as refused:
        kafka_settings(written)
    said = "STANDFAST_KAFKA_BOOTSTRAP: reads HOST:PORT, with commas between several"
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("written", "taken"),
    [
        ("b", "b"),
        ("[::1]:9", "[::1]:9"),
        (" b_1.x:9 , 127.0.0.1:65535,", "b_1.x:9,127.0.0.1:65535"),
    ],
)
def test_addresses_of_brokers_are_taken(written: str, taken: str) -> None:
    """A port may be left out, and space beside commas does no harm."""
    assert kafka_settings(written).bootstrap == taken


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ALERT_TENANTS", "x", "a list is written in JSON"),
        ("ALERT_TENANTS", "[" * 5_000, "a list is written in JSON"),
        ("ALERT_TENANTS", '["a/b"]', "String should match pattern"),
        ("METRIC_TENANTS", '["a\\nb"]', "String should match pattern"),
        ("METRIC_TENANTS", '{"a": 1}', "Input should be a valid frozenset"),
        ("PEERS", "http://a:1", "a list is written in JSON"),
        ("PEERS", '["http://[::1"]', "a worker's address reads"),
        ("CANONICAL_URL", "http://a b", "a worker's address reads"),
        ("CANONICAL_URL", "http://a\nb:1", "a worker's address reads"),
        ("CANONICAL_URL", f"http://{'x' * 64}:1", "a worker's address reads"),
        ("CANONICAL_URL", "http://a:0", "a worker's address reads"),
        ("INSTANCE", "a\nb", "String should match pattern"),
        ("INSTANCE", "x" * 250, "String should match pattern"),
        ("GROUP", "a\nb", "String should match pattern"),
        ("DRAIN_SECONDS_MAX", "inf", "Input should be less than or equal to 31536000"),
        ("RECOVERY_SECONDS_MAX", "1e300", "Input should be less than or equal to 31536000"),
        ("CHECKPOINT_SECONDS", "1e-300", "Input should be greater than or equal to 0.001"),
        ("REQUESTS_PER_SECOND", "inf", "Input should be less than or equal to"),
        ("WRONG_TOKENS_PER_SECOND", "1e-320", "Input should be greater than or equal to 0.001"),
        ("FETCH_WAIT_MS", "99999999999", "Input should be less than or equal to 30000"),
        ("ERASURE_WINDOW_DAYS", "99999999999", "Input should be less than or equal to 36500"),
    ],
)
def test_values_that_would_fail_later_are_refused_where_they_are_read(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    """One line that begins with the name of the setting, of which there is one."""
    monkeypatch.setenv(f"STANDFAST_WORKER_{name}", value)
    with pytest.raises(SettingsError) as refused:
        worker_settings({})
    assert str(refused.value).startswith(f"STANDFAST_WORKER_{name}: {said}")
    assert "\n" not in str(refused.value)


def test_lists_of_the_environment_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tenants and addresses, the latter as they are compared."""
    monkeypatch.setenv("STANDFAST_WORKER_ALERT_TENANTS", '["acme", "b-2"]')
    monkeypatch.setenv("STANDFAST_WORKER_PEERS", '["http://A:80/", "https://[::1]:9"]')
    settings = worker_settings({})
    assert settings.alert_tenants == {"acme", "b-2"}
    assert settings.peers == {"http://a:80", "https://[::1]:9"}


def test_a_server_listens_on_no_name_that_no_host_has() -> None:
    """One line, though the name cannot even be looked up."""

    async def begin() -> None:
        async with AsyncExitStack() as stack:
            await listen(stack, web.Application(), "x" * 64, 0)

    with pytest.raises(SettingsError, match=r"cannot listen on x+:0: no host has this name"):
        asyncio.run(begin())


@pytest.mark.parametrize(
    "address",
    [
        *("http://h", "https://api.example.com/v1", "http://127.0.0.1:8000/v1/", "http://[::1]:9/"),
        "https://gateway.example.com:443/openai/v1%20x",
    ],
)
def test_an_address_of_an_endpoint_is_taken(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """By name or number, with a port and a path or without."""
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    assert interpreter_settings({}).base_url == address


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1:8000", "ftp://h/v1", "http://", "http:///v1", "http://?x", "http://h\n"),
        *(f"http://ann:{SECRET}@h/v1", f"http://h/v1?key={SECRET}", f"http://h/v1#{SECRET}"),
        *(
            "http://h:65536/v1",
            "http://h:x/v1",
            "http://h:/v1",
            "http://[::1/v1",
            "http://h\x01/v1",
        ),
        *("http://h\udcff/v1", "http://h /v1", f"http://h/{'a' * 2_048}"),
    ],
)
def test_what_is_no_address_of_an_endpoint_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """In one line that does not repeat it, since it may hold a password."""
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(SettingsError) as told:
        interpreter_settings({})
    assert SECRET not in str(told.value)
    assert "\n" not in str(told.value)
    assert "BASE_URL" in str(told.value)


@pytest.mark.parametrize(
    "key",
    ["sk-secret\n", "sk-\nsecret", " sk-secret", "sk-\x01secret", "sk-secr\xe4t", "sk-\udcff"],
)
def test_a_key_that_no_header_may_hold_is_refused(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """One line names the setting before anything is asked, and says nothing of the key."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(SettingsError) as told:
        interpreter_settings({})
    assert "OPENAI_API_KEY" in str(told.value)
    assert "sk-" not in str(told.value)
    assert "\n" not in str(told.value)
