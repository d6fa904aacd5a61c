"""Make a failing stream from a seed small; Hypothesis does that by itself for what it draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.oracles.naive_map import Json
from tests.strategies_streams import Stream

_SHORTENED = (
    "operations",
    "claims",
    "decision",
    "evidence",
    "by",
    "premises",
    "subsumes",
    "explains",
    "answers",
    "about",
)


def smaller(stream: Stream, fails: Callable[[Stream], bool]) -> Stream:
    """The failing stream without the utterances, operations and references it can do without."""
    while True:
        shorter = next((s for s in _reductions(stream) if fails(s)), None)
        if shorter is None:
            return stream
        stream = shorter


def _reductions(stream: Stream) -> Iterator[Stream]:
    """The stream with one thing left out, the largest things first."""
    for position in range(len(stream)):
        yield stream[:position] + stream[position + 1 :]
    for position, utterance in enumerate(stream):
        for shorter in _shorter_lists(utterance):
            yield [*stream[:position], shorter, *stream[position + 1 :]]


def _shorter_lists(part: Json) -> Iterator[Json]:
    """The object with one element less in one of its lists, at any depth."""
    for name in _SHORTENED:
        value = part.get(name)
        if isinstance(value, dict):
            for shorter in _shorter_lists(value):
                yield {**part, name: shorter}
        if isinstance(value, list):
            for index, element in enumerate(value):
                yield {**part, name: value[:index] + value[index + 1 :]}
                if isinstance(element, dict):
                    for shorter in _shorter_lists(element):
                        yield {**part, name: [*value[:index], shorter, *value[index + 1 :]]}
