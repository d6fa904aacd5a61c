"""The path of an archive in a bucket: it is handed on like any other, and reads as its URL."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path, PosixPath
from typing import final

SCHEME = "s3://"
URL_PATTERN = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.*'()-]+)*/?$"
"""A bucket, or the objects in one whose names begin alike."""
CACHE = "STANDFAST_CACHE"
"""The environment's name of the folder in which copies of archives in buckets are kept."""


@final
class BucketPath(PosixPath):
    """`s3://BUCKET/PREFIX`; what is asked for lies in `copy`, which whoever opens it brings up."""

    __slots__ = ()

    def __str__(self) -> str:
        return SCHEME + "/".join(self.parts[1:])

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self.parts[1]

    @property
    def prefix(self) -> str:
        """What the names of its objects begin with."""
        return "/".join(self.parts[2:])

    @property
    def copy(self) -> Path:
        """The folder of this machine in which the archive is an archive like any other."""
        named = f"{os.environ.get('AWS_ENDPOINT_URL', '')} {self}"
        place = hashlib.sha256(named.encode()).hexdigest()[:32]
        return cache_folder() / "archives" / place

    def is_dir(self, **_: object) -> bool:
        """An archive in a bucket is one of segments; whether it is there is told on opening."""
        return True

    def exists(self, **_: object) -> bool:
        """The same."""
        return True


def store_path(named: str) -> Path:
    """The path of a store, or of an archive in a bucket. Raises ValueError if it names none."""
    if not named.startswith(SCHEME):
        return Path(named)
    if not re.fullmatch(URL_PATTERN, named):
        raise ValueError(f"{named}: not s3://BUCKET or s3://BUCKET/PREFIX")
    return BucketPath(named.rstrip("/"))


def cache_folder() -> Path:
    """Where this user keeps what may be fetched again."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "standfast")
