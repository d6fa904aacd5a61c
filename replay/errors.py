"""Why a store cannot be used."""

from __future__ import annotations


class StoreError(RuntimeError):
    """The file cannot be used; `str(error)` is one line that says why and what to do."""


class StoreBusyError(StoreError):
    """Another process has the file open; the file itself is sound."""


class NotKeptError(StoreError):
    """The file is sound and does not reach back that far: it goes on from a shared checkpoint."""


class NotSealedError(StoreError):
    """The file holds what was said in the clear, and was opened to be written sealed."""


class KeysNotThereError(StoreError):
    """The file is sound; the keys that open it cannot be had now."""
