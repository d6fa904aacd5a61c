"""The audit of messages that do not fit into memory together."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random

from aiokafka import TopicPartition

from replay.archive_batch import ArchivedMessage, CopiedTo, MessageBatch, message_hash
from replay.audit.messages import audit_partition
from replay.opened import opened
from replay.segment_archive import SegmentArchive

COUNT, BYTES = 160, 900_000


def test_large_messages_are_looked_at_in_little_memory(tmp_path: Path) -> None:
    """With no folder to spill to and less memory than they take, each is looked at once."""
    path = tmp_path / "segments"
    with SegmentArchive(path) as archive:
        for offset in range(COUNT):
            value = Random(offset).randbytes(BYTES)
            message = ArchivedMessage("utterances", 0, offset, 1, b"acme/c", (), value)
            batch = MessageBatch()
            batch.add(message)
            archive.write(batch)
            archive.settle()
    with closing(opened(path)) as connection:
        for setting in ("threads = 1", "temp_directory = ''", "memory_limit = '110MB'"):
            connection.execute(f"SET {setting}")
        found = audit_partition(connection, TopicPartition("utterances", 0))
    assert (found.messages, found.divergences, found.forged, found.holes) == (COUNT, [], [], [])
    assert found.ends == {("utterances", 0): CopiedTo(COUNT, message_hash(message))}
