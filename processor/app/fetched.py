"""What is fetched from a broker, read so that no record and no batch can stop its partition.

aiokafka fails at a header whose name is not UTF-8, and at a batch compressed in a way that it has
no library for, on every fetch again: whoever may write to a partition could stop it for everybody.
Here such a record has a header more, whose value is a `Problem`, and a batch that cannot be read is
one record with its bytes and its problem; what becomes of them is decided by whoever reads. Such a
record stands at the end of its batch, so that it is met from wherever in the batch reading begins.

A batch that is not what was written (its checksum is wrong, or its length) is `Damage`: nobody can
send it, and whoever reads past it loses what was there. aiokafka raises for it, and loses what it
had taken of other partitions in the same call; here it is a record too, at which readers stop.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex, TypeAlias, final

from aiokafka import AIOKafkaConsumer
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record.default_records import DefaultRecord, _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords

HEADERS_MAX = 100
"""A message of a mebibyte can have 300,000, which take forty times as much in memory."""

Headers: TypeAlias = Iterable[tuple[str, bytes | None]]

_START = struct.Struct(">qiiB")  # first offset, how many bytes follow these two, an epoch, magic
_LENGTH_FROM = 12
_LENGTH_MIN = 49
_MAGIC = 2
"""The format of batches since Kafka 0.11; brokers store no older one any more."""
_OFFSET_BYTES = 8
_GARBLED = (UnsupportedCodecError, CorruptRecordException, zlib.error, OSError, EOFError)


class Problem(bytes):
    """What is wrong with a record, as the value of a header. No broker can send one."""

    NAME = "problem"


class BatchProblem(Problem):
    """Why a batch could not be read; the record's value is the batch, and its offset the last."""


@final
class Damage(BatchProblem):
    """The disk of a broker gave back other bytes than it was given."""


def problem_of(headers: Headers, kind: type[Problem] = Problem) -> str | None:
    """What is wrong with a record; None if nothing is."""
    return next((value.decode() for _, value in headers if isinstance(value, kind)), None)


def without_problems(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    """The headers that were sent."""
    return tuple(each for each in headers if not isinstance(each[1], Problem))


def new_consumer(**options: Any) -> AIOKafkaConsumer:
    """A consumer that reads everything."""
    install()
    return AIOKafkaConsumer(**options)


def install() -> None:
    """Have aiokafka read with this module what it fetches from now on."""
    assert fetcher.MemoryRecords in (MemoryRecords, FetchedBatches), "aiokafka has changed"
    fetcher.MemoryRecords = FetchedBatches


@final
class FetchedBatches:
    """The batches of one partition in the answer to a fetch, for aiokafka's fetcher."""

    def __init__(self, fetched: bytes) -> None:
        self._fetched = fetched
        self._at = 0

    def size_in_bytes(self) -> int:
        """How many bytes were fetched."""
        return len(self._fetched)

    def has_next(self) -> bool:
        """Whether there is another whole batch; a broker gives at least one, or no bytes."""
        end = self._end()
        is_whole = end is None or end <= len(self._fetched)
        return self._at < len(self._fetched) and (is_whole or self._at == 0)

    def _end(self) -> int | None:
        """Where the next batch ends by its own word; None if that cannot be.

        aiokafka believes every length, and goes on for ever with one that is negative.
        """
        if len(self._fetched) - self._at < _START.size:
            return len(self._fetched) + 1
        _, length, _, magic = _START.unpack_from(self._fetched, self._at)
        if length < _LENGTH_MIN or magic != _MAGIC:
            return None
        return self._at + _LENGTH_FROM + int(length)

    def next_batch(self) -> FetchedBatch | DamagedBatch:
        """The next batch. Behind a damaged one nothing is told apart any more."""
        begin, end = self._at, self._end()
        self._at = len(self._fetched)
        if end is None or end > len(self._fetched):
            return DamagedBatch(self._fetched[begin:])
        stored = self._fetched[begin:end]
        batch = MemoryRecords(stored).next_batch()
        if not batch.validate_crc():
            return DamagedBatch(stored)
        self._at = end
        return FetchedBatch(batch, stored)


@final
class DamagedBatch:
    """Bytes in which only the first offset is believed, as one record."""

    is_control_batch = False
    is_transactional = False
    producer_id = None

    def __init__(self, stored: bytes) -> None:
        self._stored = stored
        self.base_offset = int.from_bytes(stored[:_OFFSET_BYTES], signed=True)
        self.next_offset = self.base_offset + len(stored)  # a record has more than one byte

    def validate_crc(self) -> bool:
        """Whether to go on and read its record."""
        return True

    def __iter__(self) -> Iterator[Any]:
        said = f"what is stored from offset {self.base_offset} on is damaged: its checksum is wrong"
        headers = [(Problem.NAME, Damage(said.encode()))]
        return iter([DefaultRecord(self.next_offset - 1, -1, 0, None, self._stored, headers)])


@final
class FetchedBatch:
    """A sound batch; aiokafka's, but for its records."""

    def __init__(self, batch: Any, stored: bytes) -> None:
        self._batch = batch
        self._stored = stored

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def validate_crc(self) -> bool:
        """It was looked at already."""
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(self._records())

    def _records(self) -> list[Any]:
        try:
            try:
                return list(map(_bounded, self._batch))
            except UnicodeDecodeError:
                lenient = _LenientBatch(self._stored)
                return [_readable(_bounded(each)) for each in lenient]
        except _GARBLED as garbled:
            return [self._as_one_record(garbled)]

    def _as_one_record(self, garbled: Exception) -> DefaultRecord:
        batch = self._batch
        first, last = batch.base_offset, batch.next_offset - 1
        said = f"the messages from offset {first} to {last} cannot be read: {garbled}"
        headers = [(Problem.NAME, BatchProblem(said.encode()))]
        place = (last, batch.max_timestamp, batch.timestamp_type)
        return DefaultRecord(*place, None, self._stored, headers)


def _bounded(record: Any) -> Any:
    """The record without the headers that are too many."""
    if len(record.headers) <= HEADERS_MAX:
        return record
    problem = Problem(f"more than {HEADERS_MAX} headers".encode())
    return _with_headers(record, [*record.headers[:HEADERS_MAX], (Problem.NAME, problem)])


def _readable(record: Any) -> Any:
    """The record with its headers' names as text; bytes that are none are written as escapes."""
    names = [name.encode(errors="surrogateescape") for name, _ in record.headers]
    shown = [name.decode(errors="backslashreplace") for name in names]
    headers = list(zip(shown, (value for _, value in record.headers), strict=True))
    for name, text in zip(names, shown, strict=True):
        if name != text.encode():
            problem = f"the name of a header is not UTF-8: {text}"
            headers.append((Problem.NAME, Problem(problem.encode())))
            return _with_headers(record, headers)
    return record


def _with_headers(record: Any, headers: list[tuple[str, bytes | None]]) -> DefaultRecord:
    at, kind = record.timestamp, record.timestamp_type
    return DefaultRecord(record.offset, at, kind, record.key, record.value, headers)


class _LenientBytes(bytearray):
    """Bytes of which every slice can be decoded."""

    def __getitem__(self, where: SupportsIndex | slice) -> Any:
        found = super().__getitem__(where)
        return _LenientBytes(found) if isinstance(found, bytearray) else found

    def decode(self, encoding: str = "utf-8", errors: str = "surrogateescape") -> str:
        """As text from which the bytes can be had back, whatever they are."""
        del errors
        return super().decode(encoding, "surrogateescape")


class _LenientBatch(_DefaultRecordBatchPy):  # type: ignore[misc] # final, but nothing enforces it
    """Reads names of headers that are not UTF-8; the compiled parser offers no way to do that."""

    _buffer: bytearray

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        self._buffer = _LenientBytes(self._buffer)
