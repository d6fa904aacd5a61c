"""What is fuzzed holds for the seeds and for every input that once broke it, and can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

import tests.fuzz.targets as targets
from schemas.utterance import Utterance
from tests.fuzz.targets import TARGETS, seeds

INPUTS = Path(__file__).parent / "inputs"
KEPT = sorted(path for name in TARGETS for path in (INPUTS / name).glob("*"))


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_is_taken(name: str) -> None:
    """Fuzzing begins with inputs that are valid, so it gets behind the first check."""
    taken = [TARGETS[name](seed) for seed in seeds(name)]
    assert taken
    assert all(taken)


def test_what_was_found_stays_mended() -> None:
    """An input that once broke a target is read or refused like any other."""
    for path in KEPT:
        TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("given", [b"", b"{", b"\xff", b"[]", b"(", b"p &", b'{"type": 3}'])
@pytest.mark.parametrize("name", TARGETS)
def test_what_is_none_is_refused(name: str, given: bytes) -> None:
    """And by its own error."""
    assert not TARGETS[name](given)


@pytest.mark.parametrize("error", [KeyError("so"), RecursionError(), AssertionError()])
def test_another_error_is_a_finding(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the reader's own error counts as refused."""

    def fail(_: bytes) -> Utterance:
        raise error

    monkeypatch.setattr(targets, "decode_utterance", fail)
    with pytest.raises(type(error)):
        targets.utterance(b"{}")


def test_what_is_not_the_same_when_it_is_read_again_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The round trip is part of what must hold."""
    (seed, *_) = seeds("utterance")
    other = targets.decode_utterance(seed).model_copy(update={"text": "another"})
    monkeypatch.setattr(targets, "canonical_bytes", lambda _: targets_bytes(other))
    with pytest.raises(AssertionError):
        targets.utterance(seed)


def targets_bytes(read: Utterance) -> bytes:
    """What the real writer makes of it."""
    return read.model_dump_json().encode()
