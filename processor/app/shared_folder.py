"""A folder as the place where workers share checkpoints, for sites that have one for all of them.

A set is written under another name and renamed when it is whole. A whole set makes the files before
it superfluous, and they are removed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import BinaryIO, ParamSpec, TypeVar, final

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
from processor.app.shared_place import Keyed, Record, SharedPlaceError

READ_BYTES = 1_048_576

Answer = TypeVar("Answer")
Given = ParamSpec("Given")


@final
class SharedFolder:
    """A folder that all workers see under some path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _of(self, partition: int) -> Path:
        return self._folder / partition_name(partition)

    async def ends(self, partitions: Sequence[int]) -> dict[int, int]:
        """One more than the number of the newest file of each partition."""
        return {each: _end(await _in_thread(_files, self._of(each))) for each in partitions}

    async def read(self, partition: int) -> AsyncGenerator[Record, None]:
        """The records of all files in order; a file that was cut ends in a record that is none."""
        for path in await _in_thread(_files, self._of(partition)):
            reader = RecordReader()
            with await _in_thread(path.open, "rb") as file:
                while piece := await _in_thread(file.read, READ_BYTES):
                    for keyed in reader.take(piece):
                        yield Record(number_of(path.name), *keyed)
            for keyed in reader.rest():
                yield Record(number_of(path.name), *keyed)

    async def is_worn(self, partition: int) -> bool:
        """Whether there are many files."""
        return len(await _in_thread(_files, self._of(partition))) >= FILES_MAX

    async def publish(
        self, partition: int, records: AsyncIterator[Keyed], marker: Keyed, *, is_whole: bool
    ) -> int | None:
        """Write a file; a whole set removes the others."""
        before = await _in_thread(_files, self._of(partition))
        number = _end(before)
        fresh = self._of(partition) / new_stem(number)
        file = await _in_thread(_create, fresh)
        try:
            with file:
                async for record in records:
                    await _in_thread(file.write, to_bytes(record))
                await _in_thread(file.write, to_bytes(marker))
                await _in_thread(os.fsync, file.fileno())
            await _in_thread(fresh.rename, fresh.with_suffix(SUFFIX))
        finally:
            await _in_thread(fresh.unlink, True)
        alone = len(await _in_thread(_files, self._of(partition))) == len(before) + 1
        if is_whole and alone:
            await _in_thread(_remove, before)
        return number + 1 if alone else None


async def _in_thread(
    work: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs
) -> Answer:
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except OSError as failure:
        raise SharedPlaceError(str(failure)) from failure


def _files(folder: Path) -> list[Path]:
    """The files of a partition in the order in which they were published."""
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if is_set(path.name))


def _end(files: list[Path]) -> int:
    return end_of([path.name for path in files])


def _create(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("xb", buffering=0)


def _remove(files: list[Path]) -> None:
    for path in files:
        path.unlink(missing_ok=True)
