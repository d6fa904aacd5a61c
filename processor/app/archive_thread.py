"""The archive and its own thread, so that the event loop never waits for the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, final

import duckdb

from processor.app.archive_fold import ArchiveFold
from processor.app.messages import OPERATIONS
from processor.vault.vault import Vault
from replay.archive import Archive
from replay.archive_batch import CopiedTo, MessageBatch, Place
from replay.errors import StoreError
from replay.segment_archive import SegmentArchive
from replay.store import Store

Answer = TypeVar("Answer")


@final
class ArchiveThread:
    """An archive that belongs to one thread; use it as `async with ArchiveThread(...)`.

    `on_stopped` is told where the log holds what this version cannot fold. `kind` is that of the
    archive: one file, or segments in a folder.
    """

    def __init__(
        self,
        path: Path,
        on_stopped: Callable[[str], None] = lambda _: None,
        kind: type[Archive] | type[SegmentArchive] = Archive,
    ) -> None:
        self.path = path
        self._kind = kind
        self._on_stopped = on_stopped
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="archive")

    async def __aenter__(self) -> ArchiveThread:
        try:
            await self._run(self._open)
        except StoreError:
            self._thread.shutdown()
            raise
        return self

    def _open(self) -> None:
        self._archive = self._kind(self.path)
        self._fold = ArchiveFold(self._archive, self._on_stopped)

    async def __aexit__(self, *_: object) -> None:
        await self._run(self._close)
        self._thread.shutdown()

    def _close(self) -> None:
        del self._fold  # its temporary file belongs to this thread
        self._archive.__exit__(None, None, None)

    @property
    def vault(self) -> Vault | None:
        """What seals the archive; None for one that is kept in the clear."""
        return self._archive.store.vault

    async def copied(self) -> dict[Place, CopiedTo]:
        """Up to where each partition is copied."""
        return await self._run(self._archive.copied)

    async def beside(self) -> duckdb.DuckDBPyConnection | None:
        """A connection for another thread, which sees what is written when it asks.

        None for segments: these are read by whoever likes to.
        """
        store = self._archive.store
        return await self._run(store.beside) if isinstance(store, Store) else None

    async def write(self, batch: MessageBatch) -> None:
        """Return when the batch is on the disk, and what it has of the log is folded."""

        def write() -> None:
            self._archive.write(batch)
            self._fold.fold(each for each in batch.messages if each.topic == OPERATIONS)
            self._archive.settle()

        await self._run(write)

    async def settle(self) -> None:
        """Nothing has come for a while; what waits to be seen need not wait for more."""
        await self._run(self._archive.settle)

    async def catch_up(self) -> bool:
        """Fold some of what was copied and not folded, if anything; whether there is more."""
        return await self._run(lambda: self._fold.catch_up())

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
