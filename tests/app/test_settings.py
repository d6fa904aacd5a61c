"""Connection settings come from the environment, are checked, and keep their secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from processor.app.errors import SettingsError
from processor.app.settings import KAFKA_PREFIX, kafka_settings

WORD = "correct horse battery"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(KAFKA_PREFIX)]:
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
