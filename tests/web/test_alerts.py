"""Alerts over HTTP: behind a place, page by page, and to nobody who may not see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from processor.app.web.tokens import Scope
from schemas.http import PLACE_MAX
from tests.client.test_answers import conversation, draft
from tests.web.fake import HERE, FakeConversations, run, serving, token_for, write_tokens


def get(path: str, said: FakeConversations, token: str | None = None, **settings: Any) -> Any:
    """Status and answer of one view."""

    async def main() -> Any:
        async with serving(said, **settings) as client:
            return await client.get(path, token)

    return run(main())


def drafts() -> FakeConversations:
    """Two drafts on withdrawn ground, at sequences 3 and 4."""
    said = conversation()
    said.say(draft("d1"), draft("d2"))
    return said


def test_alerts_come_behind_a_place() -> None:
    """As on the topic, each with its place; the last page moves on to the end of the log."""
    _, first = get(f"{HERE}/alerts?limit=1", drafts())
    assert [each["alert"]["candidate"]["utterance_id"] for each in first["alerts"]] == ["d1"]
    assert first["since"] == first["alerts"][0]["since"]
    assert (first["is_last"], first["is_whole"]) == (False, True)
    _, rest = get(f"{HERE}/alerts?since={first['since']}", drafts())
    assert [each["alert"]["candidate"]["utterance_id"] for each in rest["alerts"]] == ["d2"]
    assert (rest["is_last"], rest["since"]) == (True, f"4.{PLACE_MAX}")


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("since=4", "since"),
        ("since=4.x", "since"),
        ("since=-1.0", "since"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=1&limit=2", "limit"),
        ("turn=3", "turn"),
    ],
)
def test_a_parameter_that_cannot_be_meant_is_named(query: str, place: str) -> None:
    """As for every view."""
    status, said = get(f"{HERE}/alerts?{query}", drafts())
    assert (status, said["place"]) == (400, place)


def test_alerts_wait_for_an_utterance() -> None:
    """One that is not folded in time is told as such, with when to come again."""
    assert get(f"{HERE}/alerts?after=d2", drafts())[0] == 200
    status, said = get(f"{HERE}/alerts?after=d3&wait_ms=0", drafts())
    assert (status, said["type"]) == (503, "urn:standfast:problem:not-folded-yet")


def test_alerts_of_another_tenant_look_like_those_of_nobody(tmp_path: Path) -> None:
    """The same answer for a conversation that is another's and one that is none; 403 by scope."""
    (other, line), (checks, only) = token_for("other"), token_for("acme", Scope.CHECK)
    write_tokens(tmp_path / "tokens", line, only)
    settings = {"tokens": tmp_path / "tokens"}
    nobody = get(f"{HERE}/alerts".replace("c1", "c9"), drafts(), other, **settings)
    assert get(f"{HERE}/alerts", drafts(), other, **settings) == nobody
    assert nobody[0] == 404
    assert get(f"{HERE}/alerts", drafts(), checks, **settings)[0] == 403
