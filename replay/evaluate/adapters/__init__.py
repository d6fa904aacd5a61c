"""Public benchmarks as utterances with gold operations: one module per benchmark.

An adapter reads the published format and yields utterances; it calls no model and no clock, so the
same file gives the same bytes. Each is also a command that writes JSON Lines:

    python -m replay.evaluate.adapters.memab_fc PATH > utterances.jsonl
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from schemas.utterance import Utterance
from schemas.wire import problem_of

Adapter = Callable[[Path], Iterable[Utterance]]

EXIT_DONE = 0
EXIT_BAD_INPUT = 2

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""Benchmarks date their items only by order; the time of an item is this moment plus its place."""


class AdapterError(ValueError):
    """A file that is not in the published format; the message names the file and the place."""


class Published(BaseModel):
    """A part of a published file: the fields that are used, the others are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


PublishedT = TypeVar("PublishedT", bound=Published)


def moment(place: int) -> datetime:
    """The time of the item at this place of its stream: `place` seconds after a fixed moment."""
    return _EPOCH + timedelta(seconds=place)


def parse_published(shape: type[PublishedT], stored: bytes, place: str) -> PublishedT:
    """Read JSON of a published shape. Raises AdapterError that begins with `place`."""
    try:
        return shape.model_validate_json(stored)
    except ValidationError as invalid:
        raise unlike(invalid, place) from invalid


def unlike(invalid: ValidationError, place: str) -> AdapterError:
    """What is wrong with a part of a file: its place, the field at fault, and why."""
    first = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return AdapterError(": ".join(filter(None, (place, field, problem_of(first)))))


def line_of(utterance: Utterance) -> str:
    """One line of JSON: the fields that say something, in the order of the contract."""
    return utterance.model_dump_json(exclude_defaults=True)


def run_command(adapter: Adapter, arguments: list[str]) -> int:
    """Write the utterances of the file named in `arguments` to standard output.

    Returns the exit status: 0 done, 2 bad usage or input, with one line on standard error.
    """
    if len(arguments) != 1:
        print("usage: give the path of the benchmark's file", file=sys.stderr)
        return EXIT_BAD_INPUT
    try:
        for utterance in adapter(Path(arguments[0])):
            print(line_of(utterance))
    except (AdapterError, OSError) as unusable:
        print(unusable, file=sys.stderr)
        return EXIT_BAD_INPUT
    return EXIT_DONE
