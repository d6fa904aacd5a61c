"""The store of a worker, which may go on from a shared checkpoint, is audited as it is."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from processor.app.interpret import interpret
from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused
from processor.render.reduce import reduce
from replay.audit.run import audit
from replay.batch import Batch, Position, record_hash
from replay.sharing import TakenIn
from replay.store import Store
from schemas.wire import canonical_bytes, decode_utterance
from tests.app.test_one_process import statement
from tests.audit.stores import execute

TURNS = 20
SHARED = 14


def work(path: Path, first: int, last: int) -> Position:
    """Fold statements as a worker does, each with its place in Kafka; where that ends."""
    position = Position(0, 0, "")
    with Store(path) as store:
        conversation = store.conversation("default", "c") or Conversation.empty("default", "c")
        batch = Batch()
        for number in range(first, last + 1):
            event = interpret(conversation, decode_utterance(orjson.dumps(statement(number))))
            assert not isinstance(event, tuple)
            derived = reduce(conversation, event)
            assert not isinstance(derived, Refused)
            stored = canonical_bytes(event)
            batch.add_log(conversation, event, stored)
            for place, each in enumerate(derived):
                batch.add_derived(each, place)
            batch.add_snapshot_if_due(conversation)
            position = Position(0, number, record_hash(stored))
            batch.add_place(event, position)
            batch.reach(position)
        store.write(batch)
    return position


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The store of one worker, and that of another that began with what the first one shared."""
    folder = tmp_path_factory.mktemp("workers")
    first, second = folder / "first.duckdb", folder / "second.duckdb"
    upto = work(first, 1, SHARED)
    with Store(first) as ours, Store(second) as theirs:
        packed = ours.packed(upto, 0, ("", ""))
        theirs.take_in(upto, [TakenIn(upto, each) for each in packed])
    work(first, SHARED + 1, TURNS)
    work(second, SHARED + 1, TURNS)
    return first, second


def test_where_the_partition_stood_need_not_be_an_event_of_the_conversation(tmp_path: Path) -> None:
    """Of the conversations that are taken in together, one at most has the last record."""
    first, second = tmp_path / "first.duckdb", tmp_path / "second.duckdb"
    upto = work(first, 1, SHARED)
    with Store(first) as ours, Store(second) as theirs:
        packed = ours.packed(upto, 0, ("", ""))
        another = upto._replace(record_hash=record_hash(b"an event of another conversation"))
        theirs.take_in(another, [TakenIn(another, each) for each in packed])
    report = audit(second)
    assert report.divergences == []
    assert report.notes[0] == "default/c goes on from a shared checkpoint at event 12"


def test_a_store_that_goes_on_from_a_checkpoint_is_clean(stores: tuple[Path, Path]) -> None:
    """What was before the checkpoint is not missing: a note says where the store begins."""
    whole, taken_in = map(audit, stores)
    assert (whole.divergences, whole.notes, whole.turns) == ([], [], TURNS)
    assert taken_in.divergences == []
    assert taken_in.notes == [
        "default/c goes on from a shared checkpoint at event 12",
        "default/c: what came of 2 of its events did not come with the checkpoint they did",
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM log WHERE sequence = 16", "log, default/c, sequence 16, turn 15: is missing"),
        ("DELETE FROM snapshots WHERE sequence = 12", "log, default/c, sequence 1"),
        ("UPDATE log SET digest = 'x' WHERE sequence = 13", "log, default/c, sequence 13"),
        ("DELETE FROM derived WHERE sequence = 16", "derived, default/c, sequence 16"),
        ("UPDATE positions SET next_offset = 3", "positions, topic operations, partition 0"),
        ("INSERT INTO places SELECT * FROM places WHERE sequence = 17", "places, default/c"),
    ],
)
def test_what_is_changed_behind_a_checkpoint_is_found(
    stores: tuple[Path, Path], tmp_path: Path, change: str, told: str
) -> None:
    """Behind the checkpoint, rows that are gone or changed are located as elsewhere."""
    path = tmp_path / "changed.duckdb"
    path.write_bytes(stores[1].read_bytes())
    execute(path, [change])
    found = [each.line() for each in audit(path).divergences]
    assert found
    assert any(line.startswith(told) for line in found), found
