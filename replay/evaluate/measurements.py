"""What was measured, kept item by item, so that an interrupted evaluation goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias, final

from replay.errors import StoreError
from schemas.contract import Contract
from schemas.wire import WireError, canonical_bytes, decode_contract

ITEMS_NAME = "items.jsonl"

Subject: TypeAlias = dict[str, str | None]
"""What is measured: the benchmark, its data, the seed, the reader and its model."""


@final
class Measurement(Contract):
    """One item under one arm; `answer` is what a model said, `failure` why it says nothing."""

    item: str
    group: str
    arm: str
    scores: dict[str, float]
    answer: str | None = None
    failure: str | None = None


class _Kept(Contract):
    subject: Subject


class Measurements:
    """The measurements of one subject, in a file if there is a folder."""

    def __init__(self, folder: Path | None, subject: Subject) -> None:
        self._path = None if folder is None else folder / ITEMS_NAME
        self._subject = subject
        self._done: dict[tuple[str, str], Measurement] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._read()

    def get(self, item: str, arm: str) -> Measurement | None:
        """What was measured before."""
        return self._done.get((item, arm))

    def keep(self, measurements: list[Measurement]) -> None:
        """Add measurements, in the file with one write."""
        self._done |= {(each.item, each.arm): each for each in measurements}
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(b"".join(canonical_bytes(each) + b"\n" for each in measurements))

    def _read(self) -> None:
        """Read what is there, drop a last line that was cut short. Raises StoreError."""
        assert self._path is not None
        whole = drop_cut_line(self._path)
        if not whole:
            self._path.write_bytes(canonical_bytes(_Kept(subject=self._subject)) + b"\n")
            return
        first, *lines = whole.splitlines()
        self._check(first)
        for number, line in enumerate(lines, 2):
            try:
                measurement = decode_contract(Measurement, line)
            except WireError as invalid:
                raise StoreError(f"{self._path}:{number}: {invalid}") from invalid
            self._done[measurement.item, measurement.arm] = measurement

    def _check(self, first: bytes) -> None:
        try:
            kept = decode_contract(_Kept, first).subject
        except WireError as invalid:
            raise StoreError(f"{self._path}:1: {invalid}") from invalid
        for name in sorted(kept.keys() | self._subject.keys()):
            if kept.get(name) != self._subject.get(name):
                raise StoreError(
                    f"{self._path}:1: these items have another {name}, {kept.get(name)!r} "
                    f"instead of {self._subject.get(name)!r}; choose another --out"
                )


def drop_cut_line(path: Path) -> bytes:
    """Drop a last line that was cut short from a file; gives what is there, nothing if no file."""
    stored = path.read_bytes() if path.exists() else b""
    whole = stored[: stored.rfind(b"\n") + 1]
    if len(whole) != len(stored):
        path.write_bytes(whole)
    return whole
