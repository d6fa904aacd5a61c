"""What is fuzzed, and what must hold of any input: it is refused by name, or read and kept.

A target returns whether it took the input. Anything that it raises is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from processor.engine.plausibility.formula import FormulaError
from processor.engine.plausibility.syntax import parse, to_text
from processor.scenarios import NAMES, scenario_bytes
from schemas.wire import WireError, canonical_bytes, decode_log_event, decode_utterance
from tests.plausibility.test_syntax import READINGS
from tests.project.sources import ROOT

Target = Callable[[bytes], bool]
MESSAGE_CHARS_MAX = 4_096
"""An error is one line of bounded length, whatever the input was."""


def utterance(given: bytes) -> bool:
    """An utterance is a WireError, or the same when it is written and read again."""
    return _decoded(decode_utterance, given)


def log_event(given: bytes) -> bool:
    """The same for an event of the log."""
    return _decoded(decode_log_event, given)


def formula(given: bytes) -> bool:
    """A text is a FormulaError at a place in it, or the same formula when it is written anew."""
    text = given.decode("utf-8", errors="surrogateescape")
    try:
        read = parse(text)
    except FormulaError as wrong:
        _bounded(str(wrong))
        _within(wrong.position, text)
        return False
    assert parse(to_text(read)) == read
    return True


def _decoded(decode: Callable[[bytes], object], given: bytes) -> bool:
    try:
        read = decode(given)
    except WireError as wrong:
        _bounded(str(wrong))
        return False
    written = canonical_bytes(read)
    assert decode(written) == read
    assert canonical_bytes(decode(written)) == written
    return True


def _within(position: int, text: str) -> None:
    assert 0 <= position <= len(text)


def _bounded(message: str) -> None:
    assert len(message) <= MESSAGE_CHARS_MAX
    assert "\n" not in message
    message.encode()


TARGETS: dict[str, Target] = {
    "utterance": utterance,
    "log-event": log_event,
    "formula": formula,
}


def seeds(name: str) -> Iterator[bytes]:
    """Valid inputs to begin with: those of the scenarios, and of the recorded histories."""
    match name:
        case "utterance":
            for scenario in NAMES:
                yield from scenario_bytes(scenario).splitlines()
        case "log-event":
            for history in sorted((ROOT / "tests" / "histories").glob("*.jsonl")):
                *events, _ = history.read_bytes().splitlines()  # the last line has the digests
                yield from events
        case _:
            yield from (text.encode() for text, _ in READINGS)
