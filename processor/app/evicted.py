"""Conversations that left memory, on a disk: reading one back takes a tenth of what a store takes.

They are kept on the store's thread, which does one thing after the other, so what was put is there
for whoever asks later. What cannot be kept is read from the store instead.
"""

from __future__ import annotations

from typing import final

import structlog

from processor.app.temporary_file import TemporaryFile
from processor.engine.conversation import Conversation
from processor.engine.snapshot import Capture, encode, load
from replay.errors import StoreError

_log = structlog.get_logger(__name__)


@final
class Evicted:
    """One call at a time, from any thread."""

    def __init__(self) -> None:
        self._file: TemporaryFile | None = TemporaryFile()

    def put(self, key: str, captured: Capture) -> None:
        """Keep a conversation; if the disk is full, none is kept from now on."""
        if self._file is None:
            return
        try:
            self._file.put(key, encode(captured))
        except StoreError as full:
            self._file = None
            _log.warning("evicted_not_kept", problem=str(full))

    def get(self, key: str) -> Conversation | None:
        """The conversation as it was kept last, if it was."""
        dumped = None if self._file is None else self._file.get(key)
        return None if dumped is None else load(dumped)

    def forget(self) -> None:
        """Others may go on with all of them."""
        if self._file is not None:
            self._file = TemporaryFile()
