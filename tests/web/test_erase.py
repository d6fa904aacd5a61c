"""Erasing over HTTP: who may, what is answered, and when nothing was erased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from processor.app.errors import BrokerError
from processor.app.progress import EpochEnded
from processor.app.web.tokens import Scope
from processor.app.worker_erasure import KeptInTheClear
from processor.vault.errors import KeysAwayError
from tests.web.fake import (
    HERE,
    Client,
    FakeConversations,
    observe,
    run,
    serving,
    statement,
    token_for,
    write_tokens,
)

TOKEN, LINE = token_for("acme", Scope.ERASE)
FOREIGN = "/v1/tenants/other/conversations/c1"
UNKNOWN = "/v1/tenants/acme/conversations/c9"


def conversations() -> FakeConversations:
    """Two tenants, with a conversation of the same name each."""
    said = FakeConversations()
    said.say(statement("u1", observe("o1")), statement("u1", observe("o1"), tenant_id="other"))
    return said


def erase(
    path: Path, said: FakeConversations, *asked: str, token: str = TOKEN
) -> list[tuple[int, Any]]:
    """Status and answer of each path that is to be erased."""
    write_tokens(path / "tokens", LINE)

    async def main() -> list[tuple[int, Any]]:
        async with serving(said, tokens=path / "tokens") as client:
            return [(await client.ask("DELETE", here, token))[:2] for here in asked]

    return run(main())


def test_an_erasure_that_is_asked_for_again_is_answered_the_same(tmp_path: Path) -> None:
    """The conversation is erased; both times the answer says so."""
    said = conversations()
    first, again = erase(tmp_path, said, HERE, HERE)
    assert first == again
    assert first == (200, {"tenant_id": "acme", "conversation_id": "c1", "in_the_clear": 0})
    assert ("acme", "c1") not in said.live


def test_another_tenants_conversation_is_as_unknown_as_any(tmp_path: Path) -> None:
    """404 with the same bytes, and it is still there."""
    said = conversations()
    foreign, unknown = erase(tmp_path, said, FOREIGN, UNKNOWN)
    assert foreign == unknown
    assert foreign[0] == 404
    assert said.erased == []
    assert ("other", "c1") in said.live


@pytest.mark.parametrize(
    ("failure", "status", "kind"),
    [
        (KeptInTheClear(), 409, "kept-in-the-clear"),
        (KeysAwayError("the file"), 503, "keys-away"),
        (BrokerError("a broker"), 503, "rebalancing"),
        (EpochEnded(), 503, "rebalancing"),
    ],
)
def test_what_could_not_be_erased_is_told(
    failure: Exception, status: int, kind: str, tmp_path: Path
) -> None:
    """Nothing of the failure's text gets out, and it is the same for a foreign one."""
    said = conversations()
    said.erasing = failure
    told, foreign = erase(tmp_path, said, HERE, FOREIGN)
    assert told == foreign
    assert (told[0], told[1]["type"]) == (status, f"urn:standfast:problem:{kind}")
    assert "the file" not in str(told)


def test_only_a_token_for_it_erases(tmp_path: Path) -> None:
    """Those for checks and views do not, nor does an open gate; a parameter is refused."""
    token, line = token_for("acme", Scope.CHECK, Scope.READ)
    write_tokens(tmp_path / "tokens", line, LINE)

    async def ask(client: Client, path: str, token: str | None) -> int:
        return (await client.ask("DELETE", path, token))[0]

    async def main() -> None:
        said = conversations()
        async with serving(said, tokens=tmp_path / "tokens") as client:
            assert await ask(client, HERE, token) == 403
            assert await ask(client, HERE, None) == 401
            assert await ask(client, f"{HERE}?turn=3", TOKEN) == 400
        async with serving(said) as client:
            assert await ask(client, HERE, None) == 403
        assert said.erased == []

    run(main())
