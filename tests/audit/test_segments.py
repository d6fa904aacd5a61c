"""An archive written as segments: read meanwhile, killed anywhere, and never many tiny files."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from pathlib import Path, PurePosixPath

import duckdb
import pytest

import replay
from processor.app.archive_fold import ArchiveFold
from processor.engine.snapshot import dump
from replay.archive import Archive
from replay.archive_batch import ArchivedMessage, CopiedTo, MessageBatch
from replay.audit.run import audit
from replay.errors import StoreBusyError, StoreError
from replay.opened import opened, pinned
from replay.parquet import export
from replay.segment_archive import PUBLISH_BYTES, PUBLISH_SECONDS, SegmentArchive
from replay.segments import RETIRED_SECONDS
from replay.segments_found import place_of, read_manifest
from replay.segments_kept import MERGED_AT_ONCE
from replay.store import Store
from tests.audit.places import KINDS, empty_place, is_begun, segments_there
from tests.audit.stores import archived, make_archive
from tests.strategies_streams import seeded_stream

TABLES = ("store", "log", "derived", "snapshots", "messages", "copied", "gaps", "positions")


class Killed(Exception):  # noqa: N818 - it is what has happened
    """Stands for the death of the process."""


class Mortal:
    """A place whose writer is killed before, or right after, the so-manieth thing it does."""

    def __init__(self, path: Path, lives: int) -> None:
        self._place = place_of(path)
        self.manifest = self._place.manifest
        self.names = self._place.names
        self.location = self._place.location
        self._lives = lives

    def _live(self) -> None:
        self._lives -= 1
        if self._lives < 0:
            raise Killed

    def publish(self, manifest: bytes) -> None:
        """Publish, and be killed before or after."""
        self._live()
        self._place.publish(manifest)
        self._live()

    def put(self, name: str, file: Path) -> None:
        """Put a segment, or be killed."""
        self._live()
        self._place.put(name, file)

    def delete(self, name: str) -> None:
        """Delete a segment, or be killed."""
        self._live()
        self._place.delete(name)


def rows(path: Path, table: str) -> list[str]:
    """All rows of a table, in an order of their own."""
    with closing(opened(path)) as connection:
        return sorted(map(repr, connection.execute(f"SELECT * FROM {table}").fetchall()))


def assert_holds(folder: Path, file: Path) -> None:
    """The folder has every row that the file has, once, and both are sound."""
    for table in TABLES:
        assert rows(folder, table) == rows(file, table), table
    assert audit(folder) == audit(file)
    assert audit(folder).divergences == []


def go_on(
    archive: Archive | SegmentArchive, whole: MessageBatch, at_once: int, batches: int = 1_000
) -> None:
    """Copy what the archive has not, so many messages at a time, as somebody who knows no more."""
    fold = ArchiveFold(archive, lambda _: None)
    while fold.catch_up():
        pass
    copied = archive.copied()
    left = [
        message
        for message in whole.messages
        if message.offset >= copied.get((message.topic, message.partition), CopiedTo()).next_offset
    ]
    for start in range(0, len(left), at_once)[:batches]:
        batch = MessageBatch()
        for message in left[start : start + at_once]:
            batch.add(message)
        if not copied and start == 0:
            for gap in whole.gaps():
                batch.add_gap(gap)
            for place, reached in whole.copied().items():
                if not reached.message_hash:
                    batch.reach(place, reached)
        archive.write(batch)
        fold.fold(each for each in batch.messages if each.topic == "operations")
        if isinstance(archive, SegmentArchive):
            archive.publish()


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive that is not there yet, of either kind."""
    return empty_place(request.param, request, tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as one file."""
    path = tmp_path_factory.mktemp("file") / "archive.duckdb"
    make_archive(path, seeded_stream(3, 40))
    return path


def test_it_holds_what_a_file_holds(folder: Path, file: Path) -> None:
    """All tables have the same rows and are audited alike; they lie by topic, tenant and day."""
    make_archive(folder, seeded_stream(3, 40), SegmentArchive)
    assert_holds(folder, file)
    there = segments_there(folder, "messages")
    assert any(name.startswith("messages/topic=operations/tenant=acme/day=") for name in there)
    for tenant, conversation, turns in Store(file, read_only=True).conversations():
        with Store(file, read_only=True) as one, Store(folder, read_only=True) as other:
            found = [each.conversation_at(tenant, conversation, turns) for each in (one, other)]
        assert found[0] is not None
        assert found[1] is not None
        assert dump(found[0]) == dump(found[1])


@pytest.mark.parametrize("first", range(0, 40, 3))
def test_a_kill_loses_nothing_and_doubles_nothing(folder: Path, file: Path, first: int) -> None:
    """Killed again and again, each time a little later, it has in the end what the file has."""
    whole, deaths = archived(seeded_stream(3, 40)), 0
    for lives in range(first, first + 400, 37):
        archive = None
        try:
            archive = SegmentArchive(folder, Mortal(folder, lives))
            go_on(archive, whole, at_once=60)
            archive.__exit__(None, None, None)
            break
        except Killed:
            deaths += 1
            if archive is not None:
                archive.__exit__(Killed, Killed(), None)
            if is_begun(folder):
                assert audit(folder).divergences == []
    with SegmentArchive(folder) as archive:
        go_on(archive, whole, at_once=1_000)
    assert deaths > 0
    assert_holds(folder, file)


def one(number: int) -> MessageBatch:
    """A batch of one message."""
    batch = MessageBatch()
    at = 1_772_332_260_000 + number
    batch.add(ArchivedMessage("utterances", 0, number, at, b"acme/c", (), b"%d" % number))
    return batch


def test_a_slow_topic_makes_few_segments(folder: Path) -> None:
    """Published after each of many messages, a folder has never more than a few segments."""
    count = 150 if folder.is_absolute() else 30
    with SegmentArchive(folder) as archive:
        for number in range(count):
            archive.write(one(number))
            archive.publish()
            paths = [PurePosixPath(each.path) for each in read_manifest(folder).segments]
            assert max(Counter(path.parent for path in paths).values()) < 2 * MERGED_AT_ONCE
    with closing(opened(folder)) as connection:
        found = connection.execute('SELECT "offset" FROM messages ORDER BY ALL').fetchall()
    assert found == [(number,) for number in range(count)]


def test_what_is_read_stays_while_it_is_merged(folder: Path) -> None:
    """Whoever opened it before reads on for an hour; then the segments of before are gone."""
    now = [1_772_332_260.0]
    with SegmentArchive(folder, today=lambda: now[0]) as archive:
        for number in range(MERGED_AT_ONCE - 1):
            archive.write(one(number))
            archive.publish()
        manifest = pinned(folder)
        assert manifest is not None
        archive.write(one(MERGED_AT_ONCE - 1))
        archive.publish()
        assert len(segments_there(folder, "messages")) == MERGED_AT_ONCE + 1
        with closing(opened(folder, manifest)) as before, closing(opened(folder)) as after:
            query = "SELECT count(*) FROM messages"
            assert before.execute(query).fetchall() == [(MERGED_AT_ONCE - 1,)]
            assert after.execute(query).fetchall() == [(MERGED_AT_ONCE,)]
        now[0] += RETIRED_SECONDS
        archive.write(one(MERGED_AT_ONCE))
        archive.publish()
    assert len(segments_there(folder, "messages")) == 2
    assert read_manifest(folder).retired


class Failing:
    """A place in which one kind of step fails, `publish` after it was done."""

    def __init__(self, path: Path, step: str) -> None:
        self._place = place_of(path)
        self._step = step
        self.manifest = self._place.manifest
        self.names = self._place.names
        self.location = self._place.location
        self.put = self._place.put

    def publish(self, manifest: bytes) -> None:
        """Publish, and say that it failed."""
        self._place.publish(manifest)
        if self._step == "publish" and b'"messages/' in manifest:
            raise StoreError("cannot sync")

    def delete(self, name: str) -> None:
        """Delete nothing."""
        raise StoreError(f"{name}: cannot delete")


@pytest.mark.parametrize("step", ["publish", "delete"])
def test_what_fails_half_way_repeats_no_row(tmp_path: Path, step: str) -> None:
    """A failure behind the publication, or in it, does not have its rows published again."""
    folder, now, count = tmp_path / "segments", [1_772_332_260.0], MERGED_AT_ONCE
    archive = SegmentArchive(folder, Failing(folder, step), today=lambda: now[0])
    try:
        for number in range(count + 2):
            archive.write(one(number))
            archive.publish()
            now[0] += RETIRED_SECONDS * (number >= count)
    except StoreError:
        count = -1
    archive.__exit__(None, None, None)
    with closing(opened(folder)) as connection:
        found = connection.execute('SELECT "offset" FROM messages ORDER BY ALL').fetchall()
    assert found == [(number,) for number in range(count + 2)]
    with SegmentArchive(folder):
        manifest = read_manifest(folder)
    known = {each.path for each in (*manifest.segments, *manifest.retired)}
    assert set(place_of(folder).names()) == known


def test_it_is_published_when_it_is_time(folder: Path) -> None:
    """What is little waits for ten seconds, and what is much does not."""
    now = [0.0]

    def published() -> int:
        manifest = pinned(folder) if is_begun(folder) else None
        return 0 if manifest is None else manifest.exported["messages"].rows

    with SegmentArchive(folder, clock=lambda: now[0]) as archive:
        archive.write(one(0))
        archive.settle()
        assert published() == 0
        now[0] += PUBLISH_SECONDS
        archive.settle()
        assert published() == 1
        large = MessageBatch()
        large.add(ArchivedMessage("utterances", 0, 1, 0, None, (), b"x" * PUBLISH_BYTES))
        archive.write(large)
        archive.settle()
        assert published() == 2
        archive.write(one(2))
        assert published() == 2
        assert len(archive.page(("utterances", 0), 1)[0]) == 2
    assert published() == 3


def test_what_others_have_put_there_stays(folder: Path, tmp_path: Path) -> None:
    """A writer deletes what a killed one left, and no file of another name or place."""
    with SegmentArchive(folder) as archive:
        archive.write(one(0))
    theirs = ["log/of-mine.parquet", "sales/000001-000000.parquet"]
    left = "log/tenant=acme/day=2026-03-01/000009-000000.parquet"
    for number, name in enumerate([*theirs, left]):
        (tmp_path / f"{number}").write_bytes(b"PAR1")
        place_of(folder).put(name, tmp_path / f"{number}")
    with SegmentArchive(folder):
        pass
    names = place_of(folder).names()
    assert [name for name in [*theirs, left] if name in names] == theirs


def test_there_is_one_writer(folder: Path, file: Path) -> None:
    """Another one, and an export into the folder, are refused while it is written."""
    with SegmentArchive(folder):
        with pytest.raises(StoreBusyError, match="another process writes it"):
            SegmentArchive(folder)
        with pytest.raises(StoreBusyError, match="another process writes it"):
            export(file, folder)


def test_an_export_is_gone_on_with(folder: Path, tmp_path: Path) -> None:
    """What was exported is written on as an archive; then nothing else is exported into it."""
    file = tmp_path / "file.duckdb"
    whole = archived(seeded_stream(3, 40))
    with Archive(file) as archive:
        go_on(archive, whole, at_once=100, batches=1)
    export(file, folder)
    with Archive(file) as archive:
        go_on(archive, whole, at_once=1_000)
    with SegmentArchive(folder) as archive:
        go_on(archive, whole, at_once=50)
    assert_holds(folder, file)
    with pytest.raises(StoreError, match="is not what was exported"):
        export(file, folder)


def test_a_folder_is_asked_with_plain_duckdb(tmp_path: Path, file: Path) -> None:
    """As replay/README.md shows it, also while there are segments that were merged."""
    folder = tmp_path / "segments"
    with SegmentArchive(folder) as archive:
        go_on(archive, archived(seeded_stream(3, 40)), at_once=10)
        assert any("log/" in each.path for each in read_manifest(folder).retired)
        readme = Path(str(replay.__file__)).with_name("README.md").read_text()
        (queries,) = re.findall(r"```duckdb\n(.*?)```", readme, re.DOTALL)
        with duckdb.connect() as connection, closing(opened(file)) as whole:
            found = connection.execute(queries.replace("segments/", f"{folder}/")).fetchall()
            counted = "SELECT tenant_id, count(*) FROM log GROUP BY ALL ORDER BY ALL"
            assert found == whole.execute(counted).fetchall()
