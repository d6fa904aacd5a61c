"""What the tests of erasure share: what was said, where it is searched for, and commands."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from tests.kafka.software import ROOT

CANARY = "zanzibar-kestrel-4711"
"""Said in the conversation that is erased, and nowhere else."""
COMMAND = (sys.executable, "-m", "processor.cli")
_AT = "2026-03-01T02:31:00Z"
_NOT_TEXT = (".index", ".timeindex", ".snapshot")
_ZLIB = (b"\x78\x01", b"\x78\x9c")


def statement(conversation: str, number: int, word: str, **other: Any) -> dict[str, Any]:
    """An utterance that observes something, in a conversation of the tenant acme."""
    premises = [f"o{number - 1}"] if number > 1 else []
    claim = f"the {word} was seen {number} times"
    said = {
        "tenant_id": "acme",
        "conversation_id": conversation,
        "utterance_id": f"u{number}",
        "speaker": "carol",
        "at": _AT,
        "text": f"so it was: {claim}",
        "operations": [
            {"op": "observe", "record": f"o{number}", "claim": claim, "premises": premises}
        ],
    }
    return said | other


def draft(conversation: str, word: str) -> dict[str, Any]:
    """A draft that is checked."""
    claims = [{"text": f"as the {word} shows", "record": "o3"}]
    return statement(conversation, 99, word, kind="candidate", claims=claims, operations=None)


def withdrawal(conversation: str, word: str) -> dict[str, Any]:
    """A statement that takes the first record back, so that alerts and impacts follow."""
    operation = {"op": "revise", "target": "o1", "by": {"record": "e1", "claim": f"no {word}"}}
    return statement(conversation, 50, word, operations=[operation], text=f"never any {word}")


def told(conversation: str, word: str, count: int = 12) -> list[dict[str, Any]]:
    """A conversation: statements, a withdrawal, a draft, and one that cannot be used."""
    said = [statement(conversation, number, word) for number in range(1, count + 1)]
    return [
        *said,
        withdrawal(conversation, word),
        draft(conversation, word),
        statement(conversation, 1, f"other {word}"),  # its id is used
    ]


def standfast(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )


def found_in(needle: str, *folders: Path) -> list[str]:
    """The files below some folders in which a text can be read, however they keep it."""
    wanted = needle.encode()
    found = []
    for path in sorted(path for folder in folders for path in folder.rglob("*")):
        is_text = path.is_file() and not path.name.endswith(_NOT_TEXT)
        if is_text and any(wanted in part for part in _contents(path)):
            found.append(str(path))
    return found


def _contents(path: Path) -> Iterator[bytes]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:  # the broker has just deleted it
        return
    yield raw
    yield from _inflated(raw)
    if path.suffix in (".duckdb", ".parquet"):
        for value in _values(path):
            yield value
            yield from _inflated(value)


def _inflated(raw: bytes) -> Iterator[bytes]:
    """What is compressed anywhere in some bytes."""
    for header in _ZLIB:
        start = raw.find(header)
        while start >= 0:
            with contextlib.suppress(zlib.error):
                yield zlib.decompressobj().decompress(raw[start : start + 4_000_000])
            start = raw.find(header, start + 1)


def _values(path: Path) -> Iterator[bytes]:
    """Every value of every row, as DuckDB has it without any keys."""
    if path.suffix == ".parquet":
        with duckdb.connect() as connection:
            yield from _rows(connection, f"SELECT * FROM read_parquet('{path}')")
        return
    with duckdb.connect(str(path), read_only=True) as connection:
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            yield from _rows(connection, f"SELECT * FROM {table}")


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[bytes]:
    for row in connection.execute(query).fetchall():
        for value in row:
            yield value if isinstance(value, bytes) else repr(value).encode()
