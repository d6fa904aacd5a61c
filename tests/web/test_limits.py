"""What one tenant may ask at most, and what happens to what it asks beyond that."""

from __future__ import annotations

import asyncio
from typing import Any

from processor.app.web.limits import NAMES_MAX, Rates, Slots
from tests.web.fake import HERE, Client, FakeConversations, observe, run, serving, statement

OTHER = "/v1/tenants/other/conversations/c1"


def conversation() -> FakeConversations:
    """One statement."""
    said = FakeConversations()
    said.say(statement("u1", observe("o1")))
    return said


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    """What was not used is saved up to the burst; who is refused is told when to come again."""
    now = [0.0]
    rates = Rates(0.5, 3, clock=lambda: now[0])
    assert [rates.take("a") for _ in range(4)] == [None, None, None, 2]
    assert rates.take("b") is None
    now[0] = 2.0
    assert [rates.take("a"), rates.take("a")] == [None, 2]
    now[0] = 1_000.0
    assert [rates.take("a") for _ in range(4)] == [None, None, None, 2]


def test_buckets_of_invented_tenants_take_bounded_memory() -> None:
    """The one that was not used for longest is forgotten."""
    rates = Rates(1, 1)
    for each in range(NAMES_MAX + 10):
        rates.take(str(each))
    assert len(rates._buckets) == NAMES_MAX


def test_slots_are_counted_for_all_and_for_each() -> None:
    """One tenant cannot take them all, and each that is given back can be taken again."""
    slots = Slots(3, 2)
    taken = [slots.take("a"), slots.take("a")]
    assert slots.take("a") is None
    last = slots.take("b")
    assert last is not None
    assert slots.take("c") is None
    for slot in (*taken, last):
        assert slot is not None
        slot.release()
    assert slots.taken == 0
    assert slots.take("a") is not None


def test_a_tenant_that_asks_too_often_is_told_when_to_come_again() -> None:
    """Others are served meanwhile, and health always."""

    async def main() -> None:
        said = conversation()
        settings = {"requests_burst": 2, "requests_per_second": 0.1}
        async with serving(said, **settings) as client:
            for _ in range(2):
                assert (await client.get(f"{HERE}/state"))[0] == 200
            status, problem, response = await client.ask("GET", f"{HERE}/state")
            assert (status, problem["type"]) == (429, "urn:standfast:problem:too-many")
            assert 1 <= int(response.headers["Retry-After"]) <= 10
            assert (await client.get(f"{OTHER}/state"))[0] == 404
            assert (await client.get("/livez"))[0] == 200

    run(main())


async def busy(client: Client, said: FakeConversations, count: int) -> list[asyncio.Task[Any]]:
    """So many requests that wait."""
    waiting = [
        asyncio.create_task(client.check([], after="u9", wait_ms=20_000)) for _ in range(count)
    ]
    while said.waits < count:
        await asyncio.sleep(0.01)
    return waiting


def test_a_tenant_whose_requests_all_wait_is_refused_more() -> None:
    """At once, with Retry-After; when they are answered it is served again."""

    async def main() -> None:
        said = conversation()
        async with serving(said, waiting_per_tenant_max=3) as client:
            waiting = await busy(client, said, 3)
            status, problem, response = await client.ask("GET", f"{HERE}/state")
            assert (status, problem["type"]) == (503, "urn:standfast:problem:busy")
            assert response.headers["Retry-After"] == "1"
            assert (await client.get(f"{OTHER}/state"))[0] == 404
            said.say(statement("u9"))
            assert {(await each)[0] for each in waiting} == {200}
            assert (await client.get(f"{HERE}/state"))[0] == 200

    run(main())


def test_a_draft_that_is_left_in_its_lane_keeps_its_slot() -> None:
    """So drafts that nobody waits for any more cannot pile up."""

    async def main() -> None:
        said = conversation()
        said.is_stuck = True
        async with serving(said, waiting_per_tenant_max=2) as client:
            for _ in range(2):
                _, answer = await client.check([{"record": "o1"}], wait_ms=0)
                assert answer["outcome"] == "pending"
            assert (await client.check([{"record": "o1"}], wait_ms=0))[0] == 503
            assert len(said.appended) == 2

    run(main())


def test_a_body_and_a_list_of_claims_have_their_limits() -> None:
    """The body's is 413, the list's names the field."""

    async def main() -> None:
        async with serving(conversation(), body_bytes_max=1_024, claims_max=3) as client:
            status, problem = await client.check([], text="x" * 2_000)
            assert (status, problem["type"]) == (413, "urn:standfast:problem:too-large")
            status, problem = await client.check([{"record": "o1"}] * 4)
            assert (status, problem["place"]) == (400, "claims")
            assert (await client.check([{"record": "o1"}] * 3))[0] == 200

    run(main())
