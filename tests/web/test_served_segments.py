"""The pages of an archive of segments, while another process writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor.app.archive_fold import ArchiveFold
from replay.archive_batch import ArchivedMessage, MessageBatch
from replay.segment_archive import SegmentArchive
from schemas.wire import canonical_bytes
from tests.audit.places import KINDS, empty_place
from tests.benchmarks.conversations import log_of
from tests.waiting import wait_until
from tests.web.pages import served

DATA = "/v1/tenants/default/conversations/bench/report"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_published_is_shown(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Served from folder or bucket, a conversation grows with each time that it is published."""
    path = empty_place(kind, request, tmp_path, monkeypatch)
    events = log_of(20)[0]
    with SegmentArchive(path) as archive:
        fold = ArchiveFold(archive, lambda _: None)

        def publish(first: int, last: int) -> None:
            batch = MessageBatch()
            for offset in range(first, last):
                value = canonical_bytes(events[offset])
                place = ("operations", 0, offset, 1_772_332_260_000)
                batch.add(ArchivedMessage(*place, b"default/bench", (), value))
            archive.write(batch)
            fold.fold(batch.messages)
            archive.publish()

        publish(0, 12)
        with served(path) as server:
            assert server.get(DATA).json()["turns"] == 12
            publish(12, 20)
            wait_until(lambda: server.get(DATA).json()["turns"] == 20)
