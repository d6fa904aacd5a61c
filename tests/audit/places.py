"""Places of archives as segments: a folder, and a bucket with a copy that belongs to the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay.bucket_path import CACHE, store_path
from replay.segments_found import place_of
from tests.kafka.s3_server import BUCKET, S3Server

KINDS = ("folder", pytest.param("bucket", marks=pytest.mark.kafka))


def empty_place(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The path of an archive that is not there yet."""
    if kind == "folder":
        return tmp_path / "segments"
    server: S3Server = request.getfixturevalue("s3")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    return store_path(f"s3://{BUCKET}/{tmp_path.name}")


def is_begun(path: Path) -> bool:
    """Whether there is an archive."""
    return place_of(path).manifest() is not None


def segments_there(path: Path, table: str) -> list[str]:
    """The names of all segments of a table, whether or not a manifest knows them."""
    return [name for name in place_of(path).names() if name.startswith(f"{table}/")]
