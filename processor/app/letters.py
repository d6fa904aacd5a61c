"""Reading the dead letters. Anybody may have written them, so nothing in them is relied on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from aiokafka import TopicPartition

from processor.app.messages import DEAD_LETTERS
from processor.app.settings import KafkaSettings
from processor.app.tail import Selection
from processor.app.topic_reader import POLL_MS, message_of, paused_reader
from processor.app.topics import partition_count
from replay.archive_batch import ArchivedMessage

REASON = "reason"
"""The header that says what was wrong; it may quote what was said."""
_DIGITS_MAX = 19


@final
class Letter(NamedTuple):
    """A dead letter; what its headers do not say, or not legibly, is None or empty.

    `sha256` is that of the whole original where only its beginning was kept.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    original: bytes
    letter_class: str
    reason: str
    attempts: int | None
    source_topic: str
    source_partition: int | None
    source_offset: int | None
    sha256: str | None

    @property
    def place(self) -> str:
        """PARTITION/OFFSET, as the commands write it."""
        return f"{self.partition}/{self.offset}"

    @property
    def is_truncated(self) -> bool:
        """Whether the original was longer than what is here."""
        return self.sha256 is not None


@final
@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which letters are asked for."""

    selection: Selection = field(default_factory=Selection)
    letter_class: str | None = None

    def takes(self, letter: Letter) -> bool:
        """Whether this one is."""
        of_class = self.letter_class is None or letter.letter_class == self.letter_class
        return of_class and self.selection.takes(letter.key)


async def letters(settings: KafkaSettings, wanted: LetterFilter) -> AsyncGenerator[Letter, None]:
    """The letters there are now, partition by partition. Raises BrokerError."""
    count = await partition_count(settings, DEAD_LETTERS)
    places = [TopicPartition(DEAD_LETTERS, number) for number in range(count)]
    async with paused_reader(settings, places, reset="earliest") as reader:
        firsts = await reader.beginning_offsets(places)
        ends = await reader.end_offsets(places)
        for place in places:
            reader.seek(place, firsts[place])
            reader.resume(place)
            while await reader.position(place) < ends[place]:
                for message in await _some(reader, place):
                    letter = letter_of(message)
                    if letter.offset < ends[place] and wanted.takes(letter):
                        yield letter
            reader.pause(place)


class NoSuchLetter(Exception):  # noqa: N818 - it says what is wrong
    """There is no letter at a place; `str(error)` says at which."""


async def letters_at(
    settings: KafkaSettings, named: Sequence[tuple[int, int]]
) -> AsyncGenerator[Letter, None]:
    """The letters at these (partition, offset), in this order.

    Raises BrokerError, and NoSuchLetter: before the first letter if a place was never there.
    """
    count = await partition_count(settings, DEAD_LETTERS)
    for partition, offset in named:
        if partition >= count:
            raise NoSuchLetter(f"{partition}/{offset}: {DEAD_LETTERS} has {count} partitions")
    places = sorted({TopicPartition(DEAD_LETTERS, partition) for partition, _ in named})
    async with paused_reader(settings, places, reset="earliest") as reader:
        firsts = await reader.beginning_offsets(places)
        ends = await reader.end_offsets(places)
        for partition, offset in named:
            place = TopicPartition(DEAD_LETTERS, partition)
            if not firsts[place] <= offset < ends[place]:
                between = f"it has {firsts[place]} to before {ends[place]}"
                raise NoSuchLetter(f"{partition}/{offset}: no such letter; {between}")
        for partition, offset in named:
            yield await _at(reader, TopicPartition(DEAD_LETTERS, partition), offset)


async def _at(reader: Any, place: TopicPartition, offset: int) -> Letter:
    reader.seek(place, offset)
    reader.resume(place)
    try:
        while await reader.position(place) <= offset:
            for message in await _some(reader, place):
                if message.offset == offset:
                    return letter_of(message)
    finally:
        reader.pause(place)
    raise NoSuchLetter(f"{place.partition}/{offset}: there is no message any more")


async def _some(reader: Any, place: TopicPartition) -> list[ArchivedMessage]:
    fetched = await reader.getmany(place, timeout_ms=POLL_MS)
    return [message_of(record) for record in fetched.get(place, ())]


def letter_of(message: ArchivedMessage) -> Letter:
    """What a message of the topic says."""
    headers = dict(message.headers)

    def text(name: str) -> str:
        return (headers.get(name) or b"").decode(errors="replace")

    def number(name: str) -> int | None:
        said = text(name)
        fits = said.isascii() and said.isdecimal() and len(said) <= _DIGITS_MAX
        return int(said) if fits else None

    return Letter(
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=message.timestamp_ms,
        key=message.key or b"",
        original=message.value or b"",
        letter_class=text("class"),
        reason=text(REASON),
        attempts=number("attempts"),
        source_topic=text("source_topic"),
        source_partition=number("source_partition"),
        source_offset=number("source_offset"),
        sha256=text("sha256") if "sha256" in headers else None,
    )
