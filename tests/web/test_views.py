"""Read-only views: the JSON of the commands, as of any turn, of what must be folded."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from processor.app.local_store import LocalStore
from processor.app.tenants import Tenants, Terms
from replay.errors import NotKeptError
from schemas.evidence import MemoryClass
from tests.kafka.software import ROOT
from tests.web.fake import HERE, Client, FakeConversations, observe, run, serving, statement

pytestmark = pytest.mark.xdist_group("web_views")

INCIDENT = "/v1/tenants/default/conversations/incident"
COMMAND = (sys.executable, "-m", "processor.cli")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The incident, run in one process."""
    out = tmp_path_factory.mktemp("incident")
    scenario = ROOT / "processor" / "scenarios" / "incident.jsonl"
    subprocess.run(
        [*COMMAND, "run", str(scenario), "--out", str(out), "--json"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return out / "standfast.duckdb"


def printed(store: Path, *command: str, turn: int | None = None) -> Any:
    """What a command prints with --json."""
    at = () if turn is None else ("--turn", str(turn))
    place = ("--db", str(store), "--conversation", "incident", "--json", *at)
    return orjson.loads(
        subprocess.run(
            [*COMMAND, *command, *place], cwd=ROOT, capture_output=True, check=True
        ).stdout
    )


def seen(store: Path, *paths: str) -> list[tuple[int, Any]]:
    """Views of the same store, as a worker reads it."""

    async def main() -> list[tuple[int, Any]]:
        async with LocalStore(store, 1_000) as local:
            said = FakeConversations()
            said.copied = local.copied  # type: ignore[method-assign] # a worker's own
            async with serving(said) as client:
                return [await client.get(INCIDENT + path) for path in paths]

    return run(main())


@pytest.mark.parametrize("turn", [None, 0, 3])
def test_views_are_what_the_commands_print(store: Path, turn: int | None) -> None:
    """Byte for byte the same values, at the end and as of an earlier turn."""
    at = "" if turn is None else f"turn={turn}"
    record = "o5" if turn is None else "o1"
    questions = [
        ("state",),
        ("context",),
        ("context", "--withdrawn"),
        ("context", "--view", "active", "--budget", "120"),
        *([("context", "--record", record)] if turn != 0 else []),
    ]
    paths = [
        f"/state?{at}",
        f"/context?{at}",
        f"/context?withdrawn=true&{at}",
        f"/context?view=active&budget=120&{at}",
        *([f"/context?record={record}&{at}"] if turn != 0 else []),
    ]
    if turn != 0:
        questions.append(("affected", record))
        paths.append(f"/affected?record={record}&{at}")
    answers = seen(store, *paths)
    assert [status for status, _ in answers] == [200] * len(paths)
    assert [said for _, said in answers] == [printed(store, *each, turn=turn) for each in questions]


def test_the_view_of_a_record_holds_what_three_commands_print(store: Path) -> None:
    """Each part is the answer to one question."""
    ((status, said),) = seen(store, "/records/o5")
    assert status == 200
    assert said == {name: printed(store, name, "o5") for name in ("verify", "why", "history")}


def test_several_records_are_withdrawn_together(store: Path) -> None:
    """The parameter may stand several times, as the argument of the command may."""
    ((_, said),) = seen(store, "/affected?record=o5&record=o1")
    assert said == printed(store, "affected", "o5", "o1")


def conversation() -> FakeConversations:
    """One statement, with ids of every kind."""
    said = FakeConversations()
    said.say(statement("u1", observe("o1"), observe("it's/so:1", "o1")))
    return said


def get(path: str, said: FakeConversations | None = None) -> tuple[int, Any]:
    """One view."""

    async def main() -> tuple[int, Any]:
        async with serving(said or conversation()) as client:
            return await client.get(HERE + path)

    return run(main())


@pytest.mark.parametrize("written", [quote("it's/so:1", safe=""), "it's/so:1"])
def test_any_record_id_can_be_asked_about(written: str) -> None:
    """A slash in it may be written as it is or encoded."""
    status, said = get(f"/records/{written}")
    assert (status, said["history"]["record"]) == (200, "it's/so:1")


def in_dispute() -> FakeConversations:
    """Two facets of a timeout, one of them in dispute."""

    def told(record: str, value: str, facet: str) -> dict[str, Any]:
        atom = {"entity": "pool", "attribute": "timeout", "value": value, "facet": facet}
        return {**observe(record), "atoms": [atom]}

    said = FakeConversations()
    said.say(statement("u1", told("o1", "30 s", "live"), told("o2", "5 s", "staging")))
    said.say(statement("u2", told("o3", "60 s", "live"), speaker="bob"))
    return said


def test_the_memory_answers_about_a_key_as_of_a_turn_and_shows_all_keys() -> None:
    """A value, an abstention with both sides, and the evidence in words."""
    asked = "/memory?entity=Pool&attribute=timeout"
    _, answer = get(f"{asked}&facet=live", in_dispute())
    assert (answer["found"], [side["records"] for side in answer["sides"]]) == (
        "abstain",
        [["o1"], ["o3"]],
    )
    _, before = get(f"{asked}&facet=live&turn=1", in_dispute())
    assert (before["found"], before["value"], before["records"]) == ("value", "30 s", ["o1"])
    _, shown = get("/memory?format=minimal", in_dispute())
    assert shown["text"].splitlines() == [
        "pool / timeout [live] unresolved: 60 s | 30 s",
        "pool / timeout [staging] = 5 s",
    ]
    status, problem = get(asked, in_dispute())
    assert (status, problem["place"]) == (400, "facet")


def test_the_memory_of_the_tenant_answers_unless_the_query_names_one() -> None:
    """A tenant that keeps live values alone is told so when it asks for the one before."""
    lean = {"acme": Terms(memory=MemoryClass.COARSE_DISCARD)}
    asked = "/memory?entity=pool&attribute=timeout&facet=live&query=provenance"

    async def main(tenants: Tenants) -> list[str]:
        said = in_dispute()
        said.say(statement("u3", observe("o4"), observe("o5")))
        async with serving(said, tenants=tenants) as client:
            paths = (asked, f"{asked}&memory=coarse_retain", "/memory")
            return [(await client.get(HERE + path))[1]["memory"] for path in paths]

    assert run(main(Tenants(lean))) == ["coarse_discard", "coarse_retain", "coarse_discard"]
    assert run(main(Tenants({}, lean["acme"])))[0] == "coarse_discard"
    assert run(main(Tenants({"other": lean["acme"]})))[0] == "ledger"


@pytest.mark.parametrize("asked", ["", "&query=provenance", "&query=status", "&facet=staging"])
@pytest.mark.parametrize("memory", ["", "coarse_discard", "coarse_retain", "latest_only"])
def test_what_the_memory_says_now_is_read_without_a_copy(memory: str, asked: str) -> None:
    """The same as of a copy at the present turn; only what must be folded anew needs the copy."""
    said = in_dispute()
    query = f"&memory={memory}" if memory else ""
    paths = (f"/memory?entity=pool&attribute=timeout&facet=live{asked}{query}", f"/memory?{query}")
    if "facet" in asked:
        paths = (f"/memory?entity=pool&attribute=timeout{asked}{query}", paths[1])

    async def main() -> list[tuple[Any, Any, int]]:
        copies = 0
        copied = said.copied

        async def counted(*arguments: Any) -> Any:
            nonlocal copies
            copies += 1
            return await copied(*arguments)

        said.copied = counted  # type: ignore[method-assign] # it is counted
        found = []
        async with serving(said) as client:
            for path in paths:
                now = await client.get(HERE + path)
                before = copies
                found.append((now, await client.get(f"{HERE}{path}&turn=2"), before))
        return found

    (one, as_copy, copies), (shown, shown_as_copy, more) = run(main())
    assert (one, shown) == (as_copy, shown_as_copy)
    assert one[0] == shown[0] == 200
    assert (copies, more) == ((1, 3) if memory == "latest_only" else (0, 1))


def test_there_is_no_memory_of_a_conversation_that_is_not_there() -> None:
    """Nor of one that whoever asks may not see."""
    status, problem = get("/memory", FakeConversations())
    assert (status, problem["type"].rpartition(":")[2]) == (404, "no-conversation")


#    path, status, type of the problem, place
REFUSED = [
    ("/state?turn=2", 404, "no-conversation", None),
    ("/records/o9", 404, "no-record", "record"),
    ("/records/%00", 404, "no-record", None),
    ("/records/%FF%FE", 404, "no-record", None),
    ("/records/" + "o" * 129, 404, "no-record", None),
    ("/records/", 404, "not-found", None),
    ("/affected", 400, "invalid", "record"),
    ("/affected?record=%20", 400, "invalid", "record"),
    ("/affected?record=o9", 404, "no-record", "record"),
    ("/state?turn=x", 400, "invalid", "turn"),
    ("/state?turn=-1", 400, "invalid", "turn"),
    ("/state?turn=1&turn=2", 400, "invalid", "turn"),
    ("/state?turn=99999999999999999999", 400, "invalid", "turn"),
    ("/state?wait_ms=999999", 400, "invalid", "wait_ms"),
    ("/state?trun=1", 400, "invalid", "trun"),
    ("/memory?entity=x", 400, "invalid", "attribute"),
    ("/memory?attribute=x", 400, "invalid", "entity"),
    ("/memory?entity=x&attribute=y&query=all", 400, "invalid", "query"),
    ("/memory?entity=x&attribute=y&at=2026", 400, "invalid", "at"),
    ("/memory?entity=x&attribute=y&query=as_of&at=soon", 400, "invalid", "at"),
    ("/memory?budget=0", 400, "invalid", "budget"),
    ("/context?withdrawn=perhaps", 400, "invalid", "withdrawn"),
    ("/context?view=whole", 400, "invalid", "view"),
    ("/context?budget=0", 400, "invalid", "budget"),
    ("/context?record=ghost", 404, "no-record", "record"),
    ("/context?budget=many", 400, "invalid", "budget"),
    ("/state?after=u9&wait_ms=10", 503, "not-folded-yet", "after"),
]


@pytest.mark.parametrize(("path", "status", "kind", "place"), REFUSED)
def test_what_cannot_be_shown_is_a_problem(
    path: str, status: int, kind: str, place: str | None
) -> None:
    """It says what kind, and which parameter is at fault."""
    answered, problem = get(path)
    assert (answered, problem["status"]) == (status, status)
    assert problem["type"] == f"urn:standfast:problem:{kind}"
    assert problem["place"] == place


def test_a_date_that_is_none_is_told_in_words() -> None:
    """Neither the pattern of a date nor the name of an exception stands in the answer."""
    asked = "/memory?entity=x&attribute=y&query=as_of&at="
    told = [get(asked + written)[1]["detail"] for written in ("2026-01-01T00:00:00", "2026-02-30")]
    assert told == [
        "this is no year, month, day, or moment with a zone",
        "there is no such date",
    ]


def test_a_view_waits_for_what_was_written() -> None:
    """The utterance that it must see is in it."""

    async def main() -> None:
        said = conversation()
        async with serving(said) as client:
            asked = asyncio.create_task(client.get(f"{HERE}/state?after=u2&wait_ms=10000"))
            while not said.waits:
                await asyncio.sleep(0.01)
            said.say(statement("u2", observe("o2")))
            status, state = await asked
            assert (status, state["turn"]) == (200, 2)
            status, state = await client.get(f"{HERE}/state?after=u2&turn=1")
            assert (status, state["turn"]) == (200, 1)

    run(main())


def test_nothing_else_waits_for_a_large_view() -> None:
    """While a view is being made in its thread, the loop serves others."""

    async def main() -> None:
        said = conversation()
        is_begun, may_end = asyncio.Event(), asyncio.Event()
        copied = said.copied

        async def slow(*arguments: Any) -> Any:
            is_begun.set()
            await may_end.wait()
            return await copied(*arguments)

        said.copied = slow  # type: ignore[method-assign] # it takes as long as it is told
        async with serving(said) as client:
            view = asyncio.create_task(client.get(f"{HERE}/state"))
            await is_begun.wait()
            assert (await _livez(client))[0] == 200
            may_end.set()
            assert (await view)[0] == 200

    run(main())


def test_views_of_one_tenant_wait_for_each_other_and_for_nobody_else() -> None:
    """Only one copy is made at a time for a tenant, so many of its views delay others by one."""

    async def main() -> None:
        said = conversation()
        said.say(statement("u1", observe("o1"), tenant_id="other"))
        may_end, begun = asyncio.Event(), list[str]()
        copied = said.copied

        async def slow(tenant_id: str, *arguments: Any) -> Any:
            begun.append(tenant_id)
            if tenant_id == "acme":
                await may_end.wait()
            return await copied(tenant_id, *arguments)

        said.copied = slow  # type: ignore[method-assign] # it takes as long as it is told
        async with serving(said) as client:
            views = [asyncio.create_task(client.get(f"{HERE}/state")) for _ in range(3)]
            while not begun:
                await asyncio.sleep(0.01)
            assert (await client.get("/v1/tenants/other/conversations/c1/state"))[0] == 200
            assert begun == ["acme", "other"]
            may_end.set()
            assert [(await view)[0] for view in views] == [200] * 3

    run(main())


async def _livez(client: Client) -> tuple[int, Any]:
    return await client.get("/livez")


def test_a_turn_from_before_the_workers_checkpoint_is_a_problem_of_its_own() -> None:
    """The worker does not have it, which is no failure; the answer names no file."""

    async def main() -> tuple[int, Any]:
        said = FakeConversations()

        async def not_kept(*_: object) -> None:
            raise NotKeptError("/srv/store.duckdb: event 1 is missing")

        said.copied = not_kept  # type: ignore[method-assign,assignment]
        async with serving(said) as client:
            return await client.get(f"{INCIDENT}/state?turn=1")

    status, problem = run(main())
    assert (status, problem["type"].rsplit("/")[-1].rsplit(":")[-1]) == (404, "not-kept")
    assert "/srv" not in str(problem)
