"""A bucket of an S3 service as the place of an archive's segments.

What is read is read from a copy in a folder of this machine, which has every segment that was ever
needed: a segment is put once and never written again. The manifest is never read from the copy.
It is replaced only by who has seen the one before it, so of two writers the newer goes on, and the
older one is told at its next publication. Address and credentials are those of the usual AWS_...
variables.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, final

from processor.vault.lasting import write_whole
from replay.bucket_path import BucketPath
from replay.errors import StoreBusyError, StoreError
from replay.segment_place import MANIFEST, LocalFolder

if TYPE_CHECKING:
    from obstore.store import S3Store

STEP_SECONDS_MAX = 30.0
"""For one request; an object is fetched and sent in pieces."""
TRIES_MAX = 3
PIECE_BYTES = 8 * 1024 * 1024
UNFINISHED = ".fetching-"
"""What the names of files in the copy begin with until they are whole."""
_CODE = re.compile(r"<Code>(\w+)</Code>")
_SAID = {
    "NoSuchBucket": "there is no such bucket",
    "SignatureDoesNotMatch": "the service does not take these credentials",
    "InvalidAccessKeyId": "the service does not take these credentials",
    "AccessDenied": "the service does not allow it with these credentials",
}
Answer = TypeVar("Answer")


@final
class Bucket:
    """One archive in a bucket; the folder `path` is its copy. Every method raises StoreError."""

    def __init__(self, url: BucketPath) -> None:
        self.url = url
        self.path = url.copy
        self._local = LocalFolder(self.path)
        self._store = _open(url)
        self._seen: str | None = None
        """The tag of the manifest as it was read or published last; None if there was none."""

    def manifest(self) -> bytes | None:
        """The manifest of the bucket; None if there is none yet."""
        found = self._found(lambda: self._store.get(MANIFEST))
        self._seen = None if found is None else found.meta["e_tag"]
        return None if found is None else bytes(self._ask(found.bytes))

    def changed(self) -> bytes:
        """What is another as soon as another manifest is published."""
        found = self._found(lambda: self._store.head(MANIFEST))
        return b"" if found is None else (found["e_tag"] or "").encode()

    def publish(self, manifest: bytes) -> None:
        """Put it in the place of the one that was seen. Raises StoreBusyError if that is gone."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        seen = self._seen
        try:
            put = self._ask(
                lambda: self._store.put(
                    MANIFEST, manifest, mode="create" if seen is None else {"e_tag": seen}
                ),
                (AlreadyExistsError, PreconditionError),
            )
            self._seen = put["e_tag"]
        except (AlreadyExistsError, PreconditionError) as other:
            if self.manifest() != manifest:  # else the answer to an earlier try was lost
                raise StoreBusyError(f"{self.url}: another process writes it") from other
        with suppress(StoreError):  # then segments that are here are fetched once more
            self.remember(manifest)

    def remember(self, manifest: bytes) -> None:
        """Note which segments the copy has."""
        fresh = self.path / f"{UNFINISHED}{os.getpid()}-{threading.get_ident()}"
        try:
            write_whole(self.path / MANIFEST, manifest, fresh)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot write: {error.strerror}") from error

    def put(self, name: str, file: Path) -> None:
        """Send a finished file; then it is in the copy too."""
        self._ask(lambda: self._store.put(name, file))
        self._local.put(name, file)

    def fetch(self, name: str, size: int) -> str:
        """Have the copy hold an object of so many bytes as it is now; the SHA-256 of what came."""
        path = self.path / name
        fresh = self.path / (UNFINISHED + hashlib.sha256(name.encode()).hexdigest())
        hashed = hashlib.sha256()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with fresh.open("wb") as file:
                for piece in self._pieces(name, size):
                    hashed.update(piece)
                    file.write(piece)
            fresh.rename(path)
        except OSError as error:
            raise StoreError(f"{path}: cannot write: {error.strerror}") from error
        finally:
            fresh.unlink(missing_ok=True)
        return hashed.hexdigest()

    def _pieces(self, name: str, size: int) -> Iterator[memoryview]:
        for start in range(0, size, PIECE_BYTES):
            length = min(PIECE_BYTES, size - start)
            piece = self._found(partial(self._get, name, start, length))
            if piece is None:
                raise StoreError(f"{self.url}/{name}: is not there any more")
            yield piece

    def _get(self, name: str, start: int, length: int) -> memoryview:
        return memoryview(self._store.get_range(name, start=start, length=length))

    def names(self) -> list[str]:
        """The names of all segments, in the bucket or left in the copy."""
        found = self._ask(lambda: self._store.list().collect())
        there = {each["path"] for each in found if each["path"].endswith(".parquet")}
        return sorted(there.union(self._local.names()))

    def delete(self, name: str) -> None:
        """Delete a segment, of the copy too."""
        self._found(lambda: self._store.delete(name))
        self._local.delete(name)

    def location(self, name: str) -> str:
        """The path of its file in the copy."""
        return self._local.location(name)

    def writing(self) -> AbstractContextManager[Path]:
        """Be the one who writes on this machine; see `begun` for others."""
        return self._local.writing()

    def _found(self, work: Callable[[], Answer]) -> Answer | None:
        """The same, or None if there is no such object."""
        try:
            return self._ask(work, (FileNotFoundError,))
        except FileNotFoundError as missing:
            if _code(missing) == "NoSuchBucket":
                raise StoreError(f"{self.url}: {_problem(missing)}") from missing
            return None

    def _ask(self, work: Callable[[], Answer], but: tuple[type[Exception], ...] = ()) -> Answer:
        """What the service answers. Raises StoreError for whatever fails, but for `but`."""
        from obstore.exceptions import BaseError

        try:
            return work()
        except but:
            raise
        except (BaseError, OSError, ValueError) as failure:
            raise StoreError(f"{self.url}: {_problem(failure)}") from failure


def _open(url: BucketPath) -> S3Store:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import S3Store
    except ImportError as missing:
        raise StoreError(f"{url}: install standfast[s3]") from missing
    try:
        return S3Store(
            url.bucket,
            prefix=url.prefix or None,
            disable_bulk_delete=True,  # not every service has it
            client_options={
                "timeout": timedelta(seconds=STEP_SECONDS_MAX),
                "connect_timeout": timedelta(seconds=STEP_SECONDS_MAX / TRIES_MAX),
                "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true"),
            },
            retry_config={
                "max_retries": TRIES_MAX - 1,
                "retry_timeout": timedelta(seconds=STEP_SECONDS_MAX),
            },
        )
    except (BaseError, ValueError) as wrong:
        raise StoreError(f"{url}: {_problem(wrong)}") from wrong


def _code(failure: Exception) -> str:
    found = _CODE.search(str(failure))
    return found[1] if found else ""


def _problem(failure: Exception) -> str:
    """In one line what the service, or the way to it, says."""
    told, code = str(failure), _code(failure)
    if "error sending request" in told or "timed out" in told:
        return "the service does not answer"
    if "169.254." in told:
        return "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return f"{_SAID[code]} ({code})" if code in _SAID else told.partition("\n")[0]
