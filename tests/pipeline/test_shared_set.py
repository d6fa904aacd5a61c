"""When a set of shared checkpoints can be used, and what two workers' stores pass each other."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from processor.app.interpret import AlreadyInLog, Unusable, interpret
from processor.app.local_store import LocalStore
from processor.app.messages import OPERATIONS, Delivered, log_message
from processor.app.shared_place import Record
from processor.app.shared_set import SharedSet
from processor.engine.snapshot import SNAPSHOT_FORMAT, dump
from processor.evidence.fold import Refused
from processor.render.reduce import reduce
from replay.batch import Position
from replay.errors import NotKeptError, StoreBusyError, StoreError
from replay.sharing import TakenIn
from replay.store import Store
from schemas.checkpoint import MARKER_KEY, Forgotten, Marker, SharedConversation, record_bytes
from schemas.wire import decode_utterance
from tests.faults.logs import utterance

OURS, OTHERS = "a" * 32, "b" * 32


def at(next_offset: int, publisher: str = OURS, state_format: int = SNAPSHOT_FORMAT) -> dict:
    """What every head says."""
    return {
        "publisher": publisher,
        "state_format": state_format,
        "next_offset": next_offset,
        "record_hash": f"{next_offset:064x}",
    }


def conversation(place: int, name: str, next_offset: int, **head: object) -> Record:
    """A record of a conversation."""
    shared = SharedConversation(
        tenant_id="t",
        conversation_id=name,
        sequence=1,
        state_digest="0" * 64,
        **at(next_offset, **head),  # type: ignore[arg-type]
    )
    return Record(place, f"t/{name}".encode(), record_bytes(shared))


def forgotten(place: int, name: str, next_offset: int) -> Record:
    """A key that is in no set any more."""
    return Record(place, f"t/{name}".encode(), record_bytes(Forgotten(**at(next_offset))))


def marker(place: int, next_offset: int, since: int = 0, count: int = 2, **head: object) -> Record:
    """A marker."""
    whole = Marker(since=since, conversations=count, **at(next_offset, **head))  # type: ignore[arg-type]
    return Record(place, MARKER_KEY, record_bytes(whole))


SET = [conversation(0, "a", 10), conversation(1, "b", 10), marker(2, 10)]
DAMAGED = Record(3, b"t/a", (SET[0].value or b"")[:-1] + b"x")


@pytest.mark.parametrize(
    ("records", "objection"),
    [
        (SET, None),
        ([*SET, conversation(3, "a", 12)], None),
        ([*SET, conversation(3, "a", 12, publisher=OTHERS)], None),
        ([*SET, conversation(3, "a", 10, publisher=OTHERS)], None),
        ([*SET, conversation(3, "a", 9, publisher=OTHERS)], "an older record"),
        ([*SET, conversation(3, "a", 9, publisher=OTHERS), marker(4, 12, 4)], None),
        ([*SET, conversation(3, "a", 9, publisher=OTHERS), marker(4, 12)], "an older record"),
        ([*SET, forgotten(3, "b", 9)], "missing"),
        ([*SET, forgotten(3, "c", 10)], None),
        ([*SET, Record(3, b"t/b", None)], "missing"),
        (SET[:2], "no marker"),
        ([*SET, Record(3, MARKER_KEY, None)], "no marker"),
        ([*SET, Record(3, MARKER_KEY, b"not a marker")], None),
        ([*SET, DAMAGED], "damaged"),
        ([*SET, DAMAGED, conversation(4, "a", 12)], None),
        ([*SET, conversation(3, "b", 12)._replace(key=b"t/a")], "damaged"),
        ([*SET, conversation(3, "a", 12, state_format=SNAPSHOT_FORMAT + 1)], "another format"),
        ([*SET[:2], marker(2, 10, state_format=SNAPSHOT_FORMAT + 1)], "another format"),
    ],
)
def test_a_set_is_whole_or_it_is_not_used(records: list[Record], objection: str | None) -> None:
    """What is newer does no harm; what is older, lost, damaged or of another format does."""
    shared = SharedSet(0)
    shared.add(records)
    found = shared.objection()
    assert found is None if objection is None else (found or "").find(objection) >= 0


def test_all_places_beyond_the_marker_are_named() -> None:
    """So that each of them can be compared with the log."""
    shared = SharedSet(3)
    shared.add([*SET, conversation(3, "a", 12), conversation(4, "b", 14)])
    assert [position.next_offset for position in shared.positions()] == [10, 12, 14]


async def keep(store: LocalStore, ids: tuple[str, str], count: int, first_offset: int) -> None:
    """Fold and keep the next events of a conversation, as a worker does."""
    for offset in range(first_offset, first_offset + count):
        live = await store.conversation(*ids)
        said = decode_utterance(orjson.dumps(utterance(ids, live.sequence)))
        event = interpret(live, said)
        assert not isinstance(event, (AlreadyInLog, Unusable))
        derived = reduce(live, event)
        assert not isinstance(derived, Refused)
        message = log_message(event, 0)
        store.keep(
            live, event, derived, Delivered(OPERATIONS, 0, offset, message.key, message.value)
        )


def test_a_store_goes_on_with_what_another_shares(tmp_path: Path) -> None:
    """Conversations are equal there, nothing comes twice, and turns from before are not there."""

    async def share() -> None:
        async with LocalStore(tmp_path / "one.duckdb", 1_000) as one:
            await keep(one, ("t", "long"), 30, 0)
            await keep(one, ("t", "short"), 3, 30)
            upto = await one.shareable(0, 100)
            assert upto is not None
            assert upto.next_offset == 33
            packed = await one.packed(upto, 0, ("", ""))
            assert [each.sequence for each in packed] == [30, 3]
            assert await one.packed(upto, 30, ("", "")) == packed[1:]
            expected = [dump(await one.conversation(*each[:2])) for each in packed]
        async with LocalStore(tmp_path / "other.duckdb", 1_000) as other:
            await keep(other, ("t", "short"), 2, 30)
            for _ in range(2):
                await other.take_in(upto, [TakenIn(upto, each) for each in packed])
            assert (await other.positions([0])) == {0: upto}
            other.forget_conversations()
            assert [dump(await other.conversation(*each[:2])) for each in packed] == expected
            await keep(other, ("t", "long"), 5, 33)
            broken = packed[0]._replace(payload=b"\0" * 20)
            with pytest.raises(StoreError):
                await other.take_in(Position(0, 99, "f" * 64), [TakenIn(upto, broken)])
            assert (await other.positions([0]))[0].next_offset == 38

    asyncio.run(share())
    with Store(tmp_path / "other.duckdb.damaged", read_only=True) as other:
        assert other.conversation_at("t", "long", 34) is not None
        for turn in (0, 5):
            with pytest.raises(NotKeptError, match="a shared checkpoint at event 27"):
                other.conversation_at("t", "long", turn)
        assert other.conversation_at("t", "short", 1) is not None


def test_a_store_that_another_worker_has_open_is_not_set_aside(tmp_path: Path) -> None:
    """It is sound: whoever comes second is told so, and leaves the file where it is."""
    path = tmp_path / "store.duckdb"
    holds = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print(1, flush=True); input()"
    Store(path).__exit__(None, None, None)

    async def open_it() -> None:
        async with LocalStore(path, 1_000):
            pass

    with subprocess.Popen(
        [sys.executable, "-c", holds, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        with pytest.raises(StoreBusyError):
            asyncio.run(open_it())
        holder.communicate(b"\n", 10)
    assert [each.name for each in tmp_path.iterdir()] == ["store.duckdb"]
