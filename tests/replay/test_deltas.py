"""A long conversation is read from a snapshot, deltas and a short tail, at any turn."""

from __future__ import annotations

import hashlib
import itertools
import zlib
from contextlib import closing
from pathlib import Path

import duckdb
import orjson
import pytest

from processor.engine.conversation import Conversation
from processor.engine.snapshot import SNAPSHOT_FORMAT, dump
from processor.engine.snapshot_delta import DELTA_FORMAT
from processor.evidence.fold import advance
from replay import snapshots
from replay.audit.run import audit
from replay.errors import StoreError
from replay.opened import opened
from replay.reading import ConversationReader
from replay.store import Store
from schemas.wire import decode_log_event
from tests.app.test_one_process import run, statement
from tests.audit.stores import execute
from tests.strategies_streams import ONE_CONVERSATION, seeded_stream

TURNS = 60
FROM = 8
WAIT = 4


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short conversations have deltas too."""
    monkeypatch.setattr(snapshots, "DELTAS_FROM_EVENTS", FROM)
    monkeypatch.setattr(snapshots, "DELTA_EVENTS_MIN", WAIT)


def taken(path: Path) -> list[tuple[int, int]]:
    """Sequence and format of what a store has."""
    with closing(opened(path)) as connection:
        query = "SELECT sequence, format FROM snapshots ORDER BY sequence, format"
        return connection.execute(query).fetchall()


def check_every_turn(path: Path, key: tuple[str, str] = ("default", "c")) -> int:
    """Every turn as read is the fold of its prefix; how many turns there are."""
    conversation = Conversation.empty(*key)
    with closing(opened(path)) as connection, Store(path, read_only=True) as store:
        for stored in ConversationReader(connection, path, *key).events():
            before = conversation.turn
            advance(conversation, decode_log_event(stored.event))
            if conversation.turn > before:
                found = store.conversation_at(*key, conversation.turn)
                assert found is not None
                assert dump(found) == dump(conversation)
        whole = store.conversation(*key)
        assert whole is not None
        assert dump(whole) == dump(conversation)
    return conversation.turn


@pytest.mark.parametrize("seed", range(3))
def test_every_turn_is_the_fold_of_its_prefix(tmp_path: Path, seed: int) -> None:
    """Read from snapshot, deltas and tail, also where a run was ended and went on."""
    stream = seeded_stream(seed, 90, ONE_CONVERSATION)
    for part in range(0, 90, 30):
        run(tmp_path, [*stream[part : part + 30]])
    path = tmp_path / "store.duckdb"
    kinds = [kind for _, kind in taken(path)]
    assert kinds.count(DELTA_FORMAT) > kinds.count(SNAPSHOT_FORMAT) > 3
    assert check_every_turn(path, ONE_CONVERSATION[0]) > 30
    assert audit(path).divergences == []


def test_the_tail_is_bounded(tmp_path: Path) -> None:
    """After the first snapshots no more events than that wait for the next."""
    run(tmp_path, [statement(number) for number in range(1, TURNS)])
    sequences = [sequence for sequence, _ in taken(tmp_path / "store.duckdb")]
    ends = [*sequences, TURNS - 1]
    assert max(after - before for before, after in itertools.pairwise(ends)) <= WAIT


def test_conversations_that_leave_memory_keep_their_deltas(tmp_path: Path) -> None:
    """Two that push each other out have as many deltas as each would have alone."""
    lines = [statement(number, name) for number in range(1, TURNS) for name in ("a", "b")]
    run(tmp_path, list(lines), records_max=1)
    run(alone := tmp_path, [])
    counts = [count for count in taken(alone / "store.duckdb") if count[1] == DELTA_FORMAT]
    assert len(counts) == 2 * len({sequence for sequence, _ in counts}) > 8


def change(path: Path, sequence: int, name: str, value: object) -> None:
    """Forge a field of a delta, together with its hash and size."""
    with duckdb.connect(str(path)) as connection:
        where = f"WHERE sequence = {sequence} AND format = {DELTA_FORMAT}"
        ((stored,),) = connection.execute(f"SELECT conversation FROM snapshots {where}").fetchall()
        fields = {**orjson.loads(zlib.decompress(stored)), name: value}
        forged = zlib.compress(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS), 1)
        told = [forged, hashlib.sha256(forged).hexdigest(), len(forged)]
        connection.execute(
            f"UPDATE snapshots SET conversation = ?, bytes_hash = ?, size = ? {where}", told
        )


@pytest.mark.parametrize(("name", "value"), [("trails", [[0, []]]), ("base", 3), ("records", [])])
def test_a_forged_delta_is_located(tmp_path: Path, name: str, value: object) -> None:
    """The audit says which row it is, and nobody is answered from it."""
    run(tmp_path, [statement(number) for number in range(1, TURNS)])
    path = tmp_path / "store.duckdb"
    sequence = next(each for each, kind in taken(path) if kind == DELTA_FORMAT)
    change(path, sequence, name, value)
    found = audit(path).divergences
    assert found
    assert {(each.where.table, each.where.sequence) for each in found} == {("snapshots", sequence)}


def test_an_altered_delta_is_refused_and_done_without(tmp_path: Path) -> None:
    """Its hash tells; deleted, those that rest on it are passed over and every turn is right."""
    run(tmp_path, [statement(number) for number in range(1, TURNS)])
    path = tmp_path / "store.duckdb"
    sequence = next(each for each, kind in taken(path) if kind == DELTA_FORMAT)
    of_it = f"WHERE sequence = {sequence} AND format = {DELTA_FORMAT}"
    execute(path, [f"UPDATE snapshots SET bytes_hash = 'x' {of_it}"])
    with (
        Store(path, read_only=True) as store,
        pytest.raises(StoreError, match=f"at event {sequence} was altered"),
    ):
        store.conversation_at("default", "c", sequence + 1)
    execute(path, [f"DELETE FROM snapshots {of_it}"])
    assert check_every_turn(path) == TURNS - 1
