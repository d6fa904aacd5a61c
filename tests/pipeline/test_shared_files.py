"""Folder and bucket as the place where workers share checkpoints: what they keep, and failures."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web

from processor.app import shared_bucket
from processor.app.checkpoint_files import RecordReader, to_bytes
from processor.app.checkpoints import read_shared_set
from processor.app.errors import SettingsError
from processor.app.settings import worker_settings
from processor.app.shared_bucket import SharedBucket
from processor.app.shared_folder import SharedFolder
from processor.app.shared_place import Keyed, SharedPlace, SharedPlaceError
from schemas.checkpoint import MARKER_KEY
from tests.http_server import HttpServer
from tests.kafka.s3_server import BUCKET, S3Server, environment
from tests.pipeline.test_shared_set import SET

FIRST, SECOND = ((each.key, each.value or b"") for each in SET[:2])
MARK = (MARKER_KEY, SET[2].value or b"")


class Place(NamedTuple):
    """A place, and the folder in which its files lie on this machine."""

    place: SharedPlace
    files: Path


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.kafka)])
def shared(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Place:
    """An empty place of either kind."""
    if request.param == "folder":
        return Place(SharedFolder(tmp_path / "shared"), tmp_path / "shared")
    server: S3Server = request.getfixturevalue("s3")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    prefix = tmp_path.name
    return Place(SharedBucket(f"s3://{BUCKET}/{prefix}/"), server.folder / prefix)


async def records(*keyed: Keyed) -> AsyncIterator[Keyed]:
    """These records."""
    for each in keyed:
        yield each


def test_a_place_gives_back_what_was_published_in_order(shared: Place) -> None:
    """Sets follow each other, a whole one replaces all before it, and a cut file spoils its set."""

    async def publish() -> None:
        place = shared.place
        assert await place.ends([0, 1]) == {0: 0, 1: 0}
        assert [each async for each in place.read(0)] == []
        assert await place.publish(0, records(FIRST), MARK, is_whole=True) == 1
        assert await place.publish(0, records(SECOND), MARK, is_whole=False) == 2
        assert [each.key async for each in place.read(0)] == [b"t/a", b"marker", b"t/b", b"marker"]
        assert (await read_shared_set(place, 0)).objection() is None
        assert await place.publish(0, records(FIRST, SECOND), MARK, is_whole=True) == 3
        (file,) = (shared.files / "partition-0").iterdir()
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 3])
        assert (await read_shared_set(place, 0)).objection() is not None
        assert await place.ends([0, 1]) == {0: 3, 1: 0}

    asyncio.run(publish())


def test_a_set_of_many_pieces_comes_back_as_it_was(shared: Place) -> None:
    """Records that are larger than what is read or sent at a time are whole again."""
    large = [(b"t/%d" % number, bytes([number]) * (700_000 * number)) for number in range(8)]

    async def publish() -> None:
        assert await shared.place.publish(0, records(*large), MARK, is_whole=True) == 1
        found = [(each.key, each.value) async for each in shared.place.read(0)]
        assert found == [*large, MARK]

    asyncio.run(publish())


def test_what_ends_early_publishes_nothing(shared: Place) -> None:
    """If the records cannot all be had, no part of the set is there."""

    async def half() -> AsyncIterator[Keyed]:
        yield FIRST
        raise RuntimeError("the store is damaged")

    async def publish() -> None:
        with pytest.raises(RuntimeError, match="damaged"):
            await shared.place.publish(0, half(), MARK, is_whole=True)
        assert await shared.place.ends([0]) == {0: 0}

    asyncio.run(publish())


def test_of_two_publishers_neither_believes_it_was_alone(shared: Place) -> None:
    """Whoever finds another's set beside its own is told None, and removes nothing."""

    async def publish() -> None:
        place = shared.place

        async def interrupted() -> AsyncIterator[Keyed]:
            yield FIRST
            assert await place.publish(0, records(SECOND), MARK, is_whole=True) == 1

        assert await place.publish(0, interrupted(), MARK, is_whole=True) is None
        keys = sorted([each.key async for each in place.read(0)])
        assert keys == [b"marker", b"marker", b"t/a", b"t/b"]

    asyncio.run(publish())


@pytest.mark.parametrize("size", [1, 3, 7, 1_000])
def test_records_are_read_from_pieces_of_any_size(size: int) -> None:
    """However a file is cut into pieces, its records are the same; what is left is no record."""
    keyed = [FIRST, SECOND, (b"", b""), MARK]
    content = b"".join(map(to_bytes, keyed))
    reader = RecordReader()
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    assert [each for piece in pieces for each in reader.take(piece)] == keyed
    assert list(reader.rest()) == []
    reader = RecordReader()
    assert list(reader.take(content[:-1])) == keyed[:-1]
    assert list(reader.rest()) == [(MARK[0], MARK[1][:-1])]


def unused_port() -> int:
    """A port on which nobody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        return int(listening.getsockname()[1])


async def fails(_: web.Request) -> web.Response:
    """An answer of a service that is broken."""
    return web.Response(status=500, text="<Error><Code>InternalError</Code></Error>")


async def hangs(_: web.Request) -> web.Response:
    """No answer."""
    await asyncio.sleep(3_600)
    raise AssertionError


_REAL = [pytest.param(each, marks=pytest.mark.kafka) for each in ("403", "no bucket")]


@pytest.fixture(params=["nobody", "500", "hangs", *_REAL])
def broken_bucket(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SharedBucket]:
    """A bucket of a service that fails in one way."""
    monkeypatch.setattr(shared_bucket, "STEP_SECONDS_MAX", 2.0)
    name = BUCKET

    def use(variables: dict[str, str]) -> None:
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)

    if request.param in ("500", "hangs"):
        handler = fails if request.param == "500" else hangs
        with HttpServer("/{path:.*}", handler, method="*") as server:
            use(environment(f"http://127.0.0.1:{server.port}"))
            yield SharedBucket(f"s3://{name}")
        return
    if request.param == "nobody":
        use(environment(f"http://127.0.0.1:{unused_port()}"))
    else:
        real: S3Server = request.getfixturevalue("s3")
        wrong = {"AWS_SECRET_ACCESS_KEY": "wrong"} if request.param == "403" else {}
        use(real.environment | wrong)
        name = "another" if request.param == "no bucket" else BUCKET
    yield SharedBucket(f"s3://{name}")


def test_a_bucket_that_fails_says_so_in_one_line(broken_bucket: SharedBucket) -> None:
    """However it fails, reading and publishing end with one line that names the bucket."""

    async def each_in_turn() -> None:
        with pytest.raises(SharedPlaceError) as of_ends:
            await broken_bucket.ends([0])
        with pytest.raises(SharedPlaceError) as of_reading:
            await read_shared_set(broken_bucket, 0)
        with pytest.raises(SharedPlaceError) as of_publishing:
            await broken_bucket.publish(0, records(FIRST), MARK, is_whole=True)
        for raised in (of_ends, of_reading, of_publishing):
            assert str(raised.value).startswith("s3://")
            assert "\n" not in str(raised.value)

    asyncio.run(each_in_turn())


@pytest.mark.parametrize("url", ["checkpoints", "s3://", "s3://B", "http://b/c", "s3://b/a b"])
def test_what_names_no_bucket_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting is named, and what it holds is not repeated."""
    monkeypatch.setenv("STANDFAST_WORKER_CHECKPOINT_BUCKET", url)
    with pytest.raises(SettingsError, match=r"^STANDFAST_WORKER_CHECKPOINT_BUCKET: "):
        worker_settings({})


def test_folder_and_bucket_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of them would be meant nobody can tell."""
    monkeypatch.setenv("STANDFAST_WORKER_CHECKPOINT_BUCKET", "s3://checkpoints")
    monkeypatch.setenv("STANDFAST_WORKER_CHECKPOINT_FOLDER", "/somewhere")
    with pytest.raises(SettingsError, match="checkpoint_folder or a checkpoint_bucket"):
        worker_settings({})
