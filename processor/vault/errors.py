"""Why something cannot be sealed or opened."""

from __future__ import annotations


class VaultError(Exception):
    """`str(error)` is one line that says what is wrong and where."""


class KeysAwayError(VaultError):
    """A key cannot be had now, and may be had later: nothing was erased, so one waits."""


class DataKeyNotThereError(KeysAwayError):
    """The conversation has no data key where its keys are, and none was destroyed."""


class KeyFileError(KeysAwayError):
    """The key file is there, and cannot be used as it is."""


class KeyDestroyedError(VaultError):
    """The data keys of the conversation were destroyed: what it sealed stays closed for ever."""


class SealedBytesError(VaultError):
    """The bytes were changed, or were sealed for another conversation or another purpose."""
