"""What an audit reports: where a store says something else than its log does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple, final

import orjson

from schemas.ids import conversation_key
from schemas.wire import canonical_bytes

_SHOWN_CHARS = 200


@final
class Where(NamedTuple):
    """A row: of a conversation, by its place in the log, or of a topic, by its offset.

    `turn` is the one that the log gives. `place` counts rows of one log event.
    """

    table: str
    tenant_id: str | None = None
    conversation_id: str | None = None
    sequence: int | None = None
    turn: int | None = None
    place: int | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        parts = [self.table]
        if self.tenant_id is not None:
            parts.append(conversation_key(self.tenant_id, self.conversation_id or "?"))
        for name in ("sequence", "turn", "place", "topic", "partition", "offset"):
            value = getattr(self, name)
            if value is not None:
                parts.append(f"{name} {value}")
        return ", ".join(parts)


@final
class Divergence(NamedTuple):
    """One row that is not what it should be.

    `column` is null where the whole row is at fault. `path` leads to the first part of a JSON value
    that differs. `expected` and `actual` are those parts, cut if they are long.
    """

    where: Where
    column: str | None
    problem: str
    path: str = ""
    expected: str | None = None
    actual: str | None = None

    def view(self) -> dict[str, object]:
        """As a JSON value: what does not apply is left out of the position."""
        where = {name: value for name, value in self.where._asdict().items() if value is not None}
        return {**self._asdict(), "where": where}

    def line(self) -> str:
        """On one line."""
        column = "" if self.column is None else f", column {self.column}"
        path = f" at {self.path}" if self.path else ""
        told = ""
        if self.expected is not None or self.actual is not None:
            told = f": expected {self.expected}, found {self.actual}"
        return f"{self.where}{column}: {self.problem}{path}{told}"


def changed(where: Where, column: str, expected: object, actual: object) -> Divergence:
    """A value that is not what the log gives."""
    return Divergence(where, column, "was changed", "", shown(expected), shown(actual))


def changed_json(where: Where, column: str, expected: bytes, actual: str) -> Divergence:
    """The same for a JSON value, with the place of the first difference."""
    try:
        read = orjson.loads(actual)
    except orjson.JSONDecodeError:
        return Divergence(where, column, "is no JSON", "", shown(expected), shown(actual))
    path, left, right = first_difference(orjson.loads(expected), read)
    return Divergence(where, column, "was changed", path, shown(left), shown(right))


_ABSENT = object()


def first_difference(expected: object, actual: object) -> tuple[str, object, object]:
    """Path of the first difference of two JSON values, in sorted order of names, and both parts.

    The path reads like `failures.0.record`; it is empty if the values differ as a whole, or only in
    how they are written.
    """
    for path, left, right in _differences("", expected, actual):
        return path, left, right
    return "", expected, actual


def _differences(path: str, left: object, right: object) -> Iterator[tuple[str, object, object]]:
    pending = [(path, left, right)]
    while pending:
        path, left, right = pending.pop()
        parts: list[tuple[str, object, object]] = []
        if isinstance(left, dict) and isinstance(right, dict):
            names = sorted({*left, *right})
            parts = [(name, left.get(name, _ABSENT), right.get(name, _ABSENT)) for name in names]
        elif isinstance(left, list) and isinstance(right, list):
            length = max(len(left), len(right))
            parts = [(str(place), _at(left, place), _at(right, place)) for place in range(length)]
        elif type(left) is not type(right) or left != right:
            yield path, left, right
        dot = "." if path else ""
        pending.extend((f"{path}{dot}{name}", a, b) for name, a, b in reversed(parts))


def _at(values: list[object], place: int) -> object:
    return values[place] if place < len(values) else _ABSENT


def shown(value: object) -> str:
    """A value in few characters: bytes by length and hash, a long text by its beginning."""
    if value is _ABSENT:
        return "(nothing)"
    if isinstance(value, bytes | bytearray):
        return f"{len(value)} bytes, SHA-256 {hashlib.sha256(value).hexdigest()}"
    text = value if isinstance(value, str) else canonical_bytes(value).decode()
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
