"""A bucket of an S3 service as the place where workers share checkpoints.

A set is written to a temporary file and sent when it is whole: an object is there with all its
bytes or not at all. Every step has a deadline, so that a service that hangs is one that fails; what
fails is tried again with the next checkpoint, and in a recovery the log is folded instead.
Address and credentials are those of the usual AWS_... variables.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, final

from processor.app.checkpoint_files import (
    FILES_MAX,
    SUFFIX,
    RecordReader,
    end_of,
    is_set,
    new_stem,
    number_of,
    partition_name,
    to_bytes,
)
from processor.app.errors import SettingsError
from processor.app.shared_place import Keyed, Record, SharedPlaceError
from replay.bucket_path import SCHEME

if TYPE_CHECKING:
    from obstore.store import S3Store

STEP_SECONDS_MAX = 30.0
"""For listing, for the next piece of an object, and for a mebibyte that is sent."""
TRIES_MAX = 3
PIECE_BYTES = 1_048_576
PARTS_AT_A_TIME = 2
"""Of five mebibytes each."""

Answer = TypeVar("Answer")


@final
class SharedBucket:
    """A bucket, or the objects in one whose names begin alike: `s3://BUCKET/PREFIX`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store = _open(url)

    async def ends(self, partitions: Sequence[int]) -> dict[int, int]:
        """One more than the number of the newest object of each partition."""
        return {each: end_of(await self._names(each)) for each in partitions}

    async def read(self, partition: int) -> AsyncGenerator[Record, None]:
        """The records of all objects in order."""
        for name in await self._names(partition):
            reader, place = RecordReader(), number_of(name)
            async for piece in self._pieces(f"{partition_name(partition)}/{name}"):
                for keyed in reader.take(piece):
                    yield Record(place, *keyed)
            for keyed in reader.rest():
                yield Record(place, *keyed)

    async def _pieces(self, path: str) -> AsyncIterator[bytes]:
        found = await self._step(self._store.get_async(path))
        stream = found.stream(min_chunk_size=PIECE_BYTES)
        pieces = aiter(stream)
        while (piece := await self._step(anext(pieces, None))) is not None:
            yield bytes(piece)

    async def is_worn(self, partition: int) -> bool:
        """Whether there are many objects."""
        return len(await self._names(partition)) >= FILES_MAX

    async def publish(
        self, partition: int, records: AsyncIterator[Keyed], marker: Keyed, *, is_whole: bool
    ) -> int | None:
        """Send an object; a whole set removes the others."""
        before = await self._names(partition)
        number = end_of(before)
        folder = partition_name(partition)
        with _temporary() as path:
            with await asyncio.to_thread(path.open, "wb") as file:
                async for record in records:
                    await asyncio.to_thread(file.write, to_bytes(record))
                await asyncio.to_thread(file.write, to_bytes(marker))
            pieces = 1 + path.stat().st_size // PIECE_BYTES
            sending = self._store.put_async(
                f"{folder}/{new_stem(number)}{SUFFIX}", path, max_concurrency=PARTS_AT_A_TIME
            )
            await self._step(sending, pieces)
        alone = len(await self._names(partition)) == len(before) + 1
        if is_whole and alone:
            for name in before:
                await self._step(self._store.delete_async(f"{folder}/{name}"))
        return number + 1 if alone else None

    async def _names(self, partition: int) -> list[str]:
        """The names of a partition's objects in the order in which they were published."""
        folder = partition_name(partition)
        found = await self._step(self._store.list_async(folder).collect_async())
        names = (each["path"].rpartition("/")[2] for each in found)
        return sorted(filter(is_set, names))

    async def _step(self, work: Awaitable[Answer], pieces: int = 1) -> Answer:
        """Wait for the service, as long as it may take for so much. Raises SharedPlaceError."""
        from obstore.exceptions import BaseError

        seconds = STEP_SECONDS_MAX * pieces
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError as slow:
            raise SharedPlaceError(f"{self._url}: no answer in {seconds:g} s") from slow
        except (BaseError, OSError, ValueError) as failure:
            raise SharedPlaceError(f"{self._url}: {_first_line(failure)}") from failure


def _open(url: str) -> S3Store:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import S3Store
    except ImportError as missing:
        raise SettingsError("checkpoints in a bucket: install standfast[s3]") from missing
    bucket, _, prefix = url.removeprefix(SCHEME).rstrip("/").partition("/")
    try:
        return S3Store(
            bucket,
            prefix=prefix or None,
            disable_bulk_delete=True,  # not every service has it
            retry_config={
                "max_retries": TRIES_MAX - 1,
                "retry_timeout": timedelta(seconds=STEP_SECONDS_MAX),
            },
        )
    except (BaseError, ValueError) as wrong:
        raise SettingsError(f"{url}: {_first_line(wrong)}") from wrong


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="standfast-") as folder:
        yield Path(folder, "checkpoint")


def _first_line(failure: Exception) -> str:
    return str(failure).partition("\n")[0]
