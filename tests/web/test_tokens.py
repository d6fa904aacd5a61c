"""Tokens: who is let in, who is told the same as everybody else, and how tokens rotate."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from processor.app.errors import SettingsError
from processor.app.gate_settings import GateSettings
from processor.app.web.tokens import Scope, Tokens, new_token, read_tokens
from schemas.wire import WireError, canonical_bytes
from tests.kafka.software import ROOT
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

UNKNOWN = "/v1/tenants/acme/conversations/c9"
MANY = {"requests_burst": 10_000, "wrong_tokens_burst": 10_000}
FOREIGN = "/v1/tenants/other/conversations/c1"


def conversations() -> FakeConversations:
    """Two tenants, with a conversation of the same name each."""
    said = FakeConversations()
    said.say(statement("u1", observe("o1")))
    said.say(statement("u1", observe("secret"), tenant_id="other"))
    return said


async def everything(client: Client, here: str, token: str | None) -> list[tuple[int, Any, Any]]:
    """Every question about a conversation: status, answer, and the headers that say something."""
    answers = []
    for method, path, body in (
        ("POST", "/check", {"claims": [{"record": "secret"}], "candidate_id": "d"}),
        ("POST", "/check", {"claims": [{"record": "secret"}], "record": False}),
        ("POST", "/check", {"after": "u1", "wait_ms": 20, "candidate_id": "d"}),
        ("POST", "/check", {"claims": 1}),
        ("GET", "/state", None),
        ("GET", "/state?turn=0", None),
        ("GET", "/state?after=u1&wait_ms=20", None),
        ("GET", "/records/secret", None),
        ("GET", "/affected?record=secret", None),
        ("GET", "/context", None),
    ):
        status, said, response = await client.ask(method, here + path, token, json=body)
        told = {k: v for k, v in response.headers.items() if k not in ("Date", "Content-Length")}
        answers.append((status, said, told))
    return answers


def named(answers: list[tuple[int, Any, Any]]) -> list[tuple[int, Any, Any]]:
    """The same without the ids of the question, which an answer may repeat."""
    ids = ("tenant_id", "conversation_id")
    return [
        (status, {k: v for k, v in said.items() if k not in ids}, told)
        for status, said, told in answers
    ]


def test_another_tenants_conversation_answers_like_an_unknown_one(tmp_path: Path) -> None:
    """Every answer is the same but for the ids that were asked for, and nothing is written."""
    token, line = token_for("acme")
    write_tokens(tmp_path / "tokens", line)

    async def main() -> None:
        said = conversations()
        async with serving(said, tokens=tmp_path / "tokens") as client:
            foreign = await everything(client, FOREIGN, token)
            unknown = await everything(client, UNKNOWN, token)
            assert named(foreign) == named(unknown)
            assert {status for status, _, _ in foreign} == {200, 400, 404, 503}
            assert foreign[2][1]["outcome"] == "pending"
            assert said.appended == []

    run(main())


def test_missing_wrong_and_expired_tokens_are_alike(tmp_path: Path) -> None:
    """401 with the same bytes, whatever is wrong and whatever is asked for."""
    _, valid = token_for("acme")
    old, expired = new_token("acme", (Scope.CHECK, Scope.READ), timedelta(days=-1))
    write_tokens(tmp_path / "tokens", valid, expired)

    async def main() -> None:
        async with serving(conversations(), tokens=tmp_path / "tokens", **MANY) as client:
            wrong = (None, "sf_wrong", old, "x" * 5_000, "\udcff", "é", " ")
            answers = [
                [
                    answer
                    for here in (HERE, UNKNOWN)
                    for answer in await everything(client, here, each)
                ]
                for each in wrong
            ]
            assert all(answer == answers[0] for answer in answers)
            assert {status for status, _, _ in answers[0]} == {401}
            assert answers[0][0][2]["WWW-Authenticate"] == "Bearer"

    run(main())


def test_a_scope_that_is_missing_is_told_whatever_is_asked_for(tmp_path: Path) -> None:
    """A token for views checks nothing, one for checks shows nothing."""
    reads, reading = token_for("acme", Scope.READ)
    checks, checking = token_for("acme", Scope.CHECK)
    write_tokens(tmp_path / "tokens", reading, checking)

    async def main() -> None:
        async with serving(conversations(), tokens=tmp_path / "tokens") as client:
            for here in (HERE, UNKNOWN, FOREIGN):
                assert (await client.check([], reads, here=here))[0] == 403
                assert (await client.get(f"{here}/state", checks))[0] == 403
            assert (await client.check([], checks))[0] == 200
            assert (await client.get(f"{HERE}/state", reads))[0] == 200

    run(main())


def test_refusals_take_alike_long(tmp_path: Path) -> None:
    """No kind of wrong token, and no foreign conversation, is answered noticeably quicker."""
    token, line = token_for("acme")
    old, expired = new_token("acme", (Scope.READ,), timedelta(days=-1))
    write_tokens(tmp_path / "tokens", line, expired)
    asked = {
        "wrong": (HERE, "sf_wrong"),
        "missing": (HERE, None),
        "expired": (HERE, old),
        "foreign": (FOREIGN, token),
        "unknown": (UNKNOWN, token),
    }

    async def main() -> dict[str, list[float]]:
        taken: dict[str, list[float]] = {name: [] for name in asked}
        async with serving(conversations(), tokens=tmp_path / "tokens", **MANY) as client:
            for _ in range(150):
                for name, (here, holder) in asked.items():
                    began = time.perf_counter()
                    await client.get(f"{here}/state", holder)
                    taken[name].append(time.perf_counter() - began)
        return taken

    medians = {name: statistics.median(times) for name, times in run(main()).items()}
    for one, other in (("wrong", "missing"), ("wrong", "expired"), ("foreign", "unknown")):
        assert 0.4 < medians[one] / medians[other] < 2.5, medians


def test_tokens_rotate_without_a_restart(tmp_path: Path) -> None:
    """A new token is let in beside the old one, until that is removed; a broken file is ignored."""
    old, old_line = token_for("acme")
    new, new_line = token_for("acme")
    path = tmp_path / "tokens"
    write_tokens(path, old_line)

    async def main() -> None:
        tokens = Tokens(path)
        tokens.load()

        def who_is_in() -> list[bool]:
            now = datetime.now(UTC)
            return [tokens.holder(each, now) is not None for each in (old, new)]

        assert who_is_in() == [True, False]
        write_tokens(path, old_line, new_line)
        await tokens.reload(path)
        assert who_is_in() == [True, True]
        path.write_text("nonsense")
        await tokens.reload(path)
        assert who_is_in() == [True, True]
        path.unlink()
        await tokens.reload(path)
        assert who_is_in() == [True, True]
        write_tokens(path, new_line)
        await tokens.reload(path)
        assert who_is_in() == [False, True]

    run(main())


def test_a_running_server_sees_new_tokens(tmp_path: Path) -> None:
    """The file is looked at about once a second."""
    token, line = token_for("acme")
    _, other = token_for("acme")
    write_tokens(tmp_path / "tokens", other)

    async def main() -> None:
        async with serving(conversations(), tokens=tmp_path / "tokens") as client:
            assert (await client.get(f"{HERE}/state", token))[0] == 401
            write_tokens(tmp_path / "tokens", other, line)
            while (await client.get(f"{HERE}/state", token))[0] != 200:
                await asyncio.sleep(0.1)

    run(main())


@pytest.mark.parametrize(
    ("written", "named_line"),
    [
        (b"{}", "line 1"),
        (b'\n{"tenant": "a"}', "line 2"),
        (b'{"tenant": "a/b", "sha256": "%s", "scopes": ["read"]}' % (b"0" * 64), "line 1"),
        (b'{"tenant": "a", "sha256": "%s", "scopes": []}' % (b"0" * 64), "line 1"),
        (b'{"tenant": "a", "sha256": "%s", "scopes": ["all"]}' % (b"0" * 64), "line 1"),
        (b"sf_a-token-in-the-clear", "line 1"),
    ],
)
def test_a_file_that_is_wrong_is_named_by_line(written: bytes, named_line: str) -> None:
    """And nothing of a token that stands in it by mistake is repeated."""
    with pytest.raises(WireError) as wrong:
        read_tokens(written)
    assert wrong.value.place == named_line
    assert "in-the-clear" not in str(wrong.value)


def test_a_token_may_stand_once() -> None:
    """Two lines for one token would have to agree."""
    _, line = token_for("acme")
    with pytest.raises(WireError, match="line 2: the token stands twice"):
        read_tokens(canonical_bytes(line) + b"\n" + canonical_bytes(line))


def test_a_gate_without_tokens_answers_nothing() -> None:
    """Health is shown; of conversations there is nothing at all."""

    async def main() -> None:
        async with serving(conversations(), open_gate=False) as client:
            assert (await client.get("/livez"))[0] == 200
            assert (await client.get(f"{HERE}/state"))[0] == 404

    run(main())


def test_only_this_machine_can_be_let_in_without_tokens() -> None:
    """An open gate needs a loopback address, and goes with no tokens."""
    assert GateSettings(open_gate=True, listen_host="::1").open_gate
    with pytest.raises(ValidationError, match="loopback"):
        GateSettings(open_gate=True, listen_host="0.0.0.0")
    with pytest.raises(ValidationError, match="no effect"):
        GateSettings(open_gate=True, tokens=Path("tokens"))


def test_a_tokens_file_that_is_not_there_ends_the_start(tmp_path: Path) -> None:
    """A gate that was asked for is not silently left closed."""

    async def main() -> None:
        async with serving(conversations(), tokens=tmp_path / "none"):
            raise AssertionError("it started")

    with pytest.raises(SettingsError, match="No such file"):
        run(main())


def test_the_command_prints_a_token_and_the_line_for_the_file() -> None:
    """The line lets the token in, for its tenant and scopes, and does not hold it."""
    made = subprocess.run(
        [
            *(sys.executable, "-m", "processor.cli", "token", "--tenant", "acme"),
            *("--scope", "read", "--scope", "check", "--days", "30"),
        ],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    token, line = made.stdout.decode().splitlines()
    assert token not in line
    tokens = Tokens(Path("unread"), read_tokens(line.encode()))
    now = datetime.now(UTC)
    assert tokens.holder(token, now) == ("acme", (Scope.CHECK, Scope.READ))
    assert tokens.holder(token, now + timedelta(days=31)) is None


def test_the_command_refuses_what_is_no_tenant() -> None:
    """One line, and status 2."""
    refused = subprocess.run(
        [
            *(sys.executable, "-m", "processor.cli", "token", "--json"),
            *("--tenant", "a/b", "--scope", "read"),
        ],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert refused.returncode == 2
    assert refused.stderr.count(b"\n") == 1
    assert orjson.loads(b"[]" if not refused.stdout else refused.stdout) == []
