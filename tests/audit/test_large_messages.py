"""An archive of messages that do not fit into memory together: audited, and read again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from aiokafka import TopicPartition

from replay.archive import Archive
from replay.archive_batch import ArchivedMessage, CopiedTo, MessageBatch, message_hash
from replay.archive_reader import ArchiveReader
from replay.audit.messages import audit_partition
from replay.opened import opened
from replay.segment_archive import SegmentArchive

COUNT, BYTES = 160, 900_000
PLACE = ("utterances", 0)
KINDS: tuple[type[Archive] | type[SegmentArchive], ...] = (Archive, SegmentArchive)


@pytest.fixture(scope="module", params=KINDS, ids=["file", "segments"])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of either kind with such messages."""
    path = tmp_path_factory.mktemp("large") / "archive"
    with request.param(path) as archive:
        for offset in range(COUNT):
            batch = MessageBatch()
            batch.add(message(offset))
            archive.write(batch)
            archive.settle()
    return path


def message(offset: int) -> ArchivedMessage:
    """A message of nearly a megabyte."""
    return ArchivedMessage(*PLACE, offset, 1, b"acme/c", (), Random(offset).randbytes(BYTES))


def test_large_messages_are_looked_at_in_little_memory(large: Path) -> None:
    """With no folder to spill to and less memory than they take, each is looked at once."""
    with closing(opened(large)) as connection:
        for setting in ("threads = 1", "temp_directory = ''", "memory_limit = '110MB'"):
            connection.execute(f"SET {setting}")
        found = audit_partition(connection, TopicPartition(*PLACE))
    assert (found.messages, found.divergences, found.forged, found.holes) == (COUNT, [], [], [])
    assert found.ends == {PLACE: CopiedTo(COUNT, message_hash(message(COUNT - 1)))}


def test_large_messages_are_read_again(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever restores them, or folds them late, gets all of them, in pieces that fit."""
    monkeypatch.setattr("replay.archive_reader.MEMORY_LIMIT", "110MB")
    with ArchiveReader(large) as reader:
        read = [each for page in reader.pages(PLACE[0]) for each in page]
    assert read == [message(offset) for offset in range(COUNT)]
    with (SegmentArchive if large.is_dir() else Archive)(large) as archive:
        paged: list[ArchivedMessage] = []
        offset = 0
        while offset < COUNT:
            page, offset = archive.page(PLACE, offset)
            paged += page
    assert paged == read
