"""Stores and archives to be audited, made without a broker, and ways to damage them."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import orjson

from processor.app.archive_fold import ArchiveFold
from processor.app.interpret import Source, interpret
from processor.app.messages import (
    SNAPSHOTS,
    UTTERANCES,
    Outgoing,
    derived_messages,
    log_message,
    utterance_message,
)
from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused
from processor.render.reduce import reduce
from replay.archive import Archive
from replay.archive_batch import DELETED, ArchivedMessage, CopiedTo, Gap, MessageBatch
from replay.segment_archive import SegmentArchive
from schemas.ids import conversation_key
from schemas.wire import decode_utterance
from tests.strategies_streams import Stream

Json = dict[str, Any]
PARTITIONS = 2
DELETED_BEFORE = 3
"""Offsets of the utterances of partition 0 that an archive never had."""


def messages_of(stream: Stream) -> Iterator[Outgoing]:
    """Everything that a worker and its clients send for a stream of utterances, in order."""
    conversations: dict[tuple[str, str], Conversation] = {}
    for said in stream:
        written = orjson.dumps(said)
        utterance = decode_utterance(written)
        ids = (utterance.tenant_id, utterance.conversation_id)
        partition = _partition(*ids)
        yield utterance_message(utterance, written, partition)
        conversation = conversations.setdefault(ids, Conversation.empty(*ids))
        event = interpret(conversation, utterance, source=Source(UTTERANCES, partition, 0))
        if isinstance(event, tuple):
            continue
        yield log_message(event, partition)
        derived = reduce(conversation, event)
        assert not isinstance(derived, Refused)
        yield from derived_messages(derived, utterance.at, partition, frozenset({"acme"}))
        if conversation.sequence % 3 == 0:
            yield log_message(event, partition)  # appended twice, and refused the second time


def make_archive(
    path: Path, stream: Stream, kind: type[Archive] | type[SegmentArchive] = Archive
) -> None:
    """An archive of all that, with a gap, a compacted topic and bytes that say nothing."""
    with kind(path) as archive:
        fold = ArchiveFold(archive, lambda _: None)
        batch = archived(stream)
        archive.write(batch)
        fold.fold(each for each in batch.messages if each.topic == "operations")


def archived(stream: Stream) -> MessageBatch:
    """What such an archive copies."""
    key = conversation_key("default", "c1").encode()
    odd = Outgoing("operations", 0, key, b"\xff no event", ())
    checkpoint = Outgoing(SNAPSHOTS, 1, b"marker", b"sealed", ())
    batch = MessageBatch()
    batch.add_gap(Gap(UTTERANCES, 0, 0, DELETED_BEFORE, DELETED))
    ends = {(UTTERANCES, 0): DELETED_BEFORE}
    for number, message in enumerate([odd, checkpoint, *messages_of(stream), checkpoint]):
        place = (message.topic, message.partition)
        offset = ends.get(place, 0) + 2 * (message.topic == SNAPSHOTS)
        ends[place] = offset + 1
        at = 1_772_332_260_000 + number
        batch.add(ArchivedMessage(*place, offset, at, message.key, message.headers, message.value))
    for topic in ("dead-letters", *(topic for topic, _ in ends)):
        for partition in range(PARTITIONS):
            if (topic, partition) not in ends:
                batch.reach((topic, partition), CopiedTo())
    return batch


def _partition(tenant_id: str, conversation_id: str) -> int:
    return hashlib.sha256(f"{tenant_id}/{conversation_id}".encode()).digest()[0] % PARTITIONS


def altered(whole: Path, folder: Path, change: Callable[[duckdb.DuckDBPyConnection], None]) -> Path:
    """A copy of a store in which somebody changed something."""
    copy = folder / "altered.duckdb"
    shutil.copy(whole, copy)
    with duckdb.connect(str(copy)) as connection:
        change(connection)
    return copy


def execute(path: Path, statements: Sequence[str]) -> None:
    """Change a file behind the store's back."""
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
