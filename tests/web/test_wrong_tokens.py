"""Who sends many requests without a valid token is refused more, and nobody else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor.app.web.limits import NAMES_MAX
from processor.app.web.problem_details import Kind
from processor.app.web.wrong_tokens import WrongTokens, sender
from tests.web.fake import HERE, FakeConversations, observe, run, serving, statement, token_for
from tests.web.fake import write_tokens as write


def kinds(wrong: WrongTokens, remote: str | None, count: int) -> list[Kind]:
    """How so many requests from an address are answered."""
    return [wrong.problem(remote).kind for _ in range(count)]


def test_an_address_has_its_burst_and_then_its_rate() -> None:
    """Others have their own; who is refused is told when to come again, and is let try then."""
    now = [0.0]
    wrong = WrongTokens(0.5, 2, clock=lambda: now[0])
    refused = Kind.TOO_MANY_WRONG_TOKENS
    assert kinds(wrong, "192.0.2.1", 3) == [Kind.UNAUTHORISED, Kind.UNAUTHORISED, refused]
    assert wrong.problem("192.0.2.1").retry_s == 2
    assert kinds(wrong, "192.0.2.2", 1) == [Kind.UNAUTHORISED]
    now[0] = 2.0
    assert kinds(wrong, "192.0.2.1", 2) == [Kind.UNAUTHORISED, refused]


def test_a_network_of_many_addresses_is_one_sender() -> None:
    """In IPv6 an address more costs nothing; an IPv4 address is the same written as IPv6."""
    assert sender("2001:db8::1") == sender("2001:db8::ffff:1") == "2001:db8::/64"
    assert sender("2001:db8:0:1::1") != sender("2001:db8::1")
    assert sender("::ffff:192.0.2.1") == sender("192.0.2.1") == "192.0.2.1"
    assert sender(None) == sender("/run/socket") == ""


def test_any_number_of_addresses_takes_bounded_memory() -> None:
    """The one that was not heard of for longest is forgotten."""
    wrong = WrongTokens()
    for number in range(NAMES_MAX + 10):
        wrong.problem(f"2001:db8:{number >> 16:x}:{number & 0xFFFF:x}::1")
    assert len(wrong._rates._buckets) == NAMES_MAX


@pytest.mark.parametrize("token", [None, "sf_wrong"])
def test_many_wrong_tokens_are_answered_429_and_valid_ones_as_ever(
    tmp_path: Path, token: str | None
) -> None:
    """From the same address too: behind a proxy all have one."""
    valid, line = token_for("acme")
    write(tmp_path / "tokens", line)
    said = FakeConversations()
    said.say(statement("u1", observe("o1")))

    async def main() -> None:
        limits = {"wrong_tokens_burst": 3, "wrong_tokens_per_second": 0.01}
        async with serving(said, tokens=tmp_path / "tokens", **limits) as client:
            asked = [await client.ask("GET", f"{HERE}/state", token) for _ in range(5)]
            assert [status for status, *_ in asked] == [401, 401, 401, 429, 429]
            _, problem, response = asked[-1]
            assert problem["type"] == "urn:standfast:problem:too-many-wrong-tokens"
            assert 1 <= int(response.headers["Retry-After"]) <= 100
            assert (await client.get(f"{HERE}/state", valid))[0] == 200
            assert (await client.get("/livez"))[0] == 200

    run(main())
