"""Deltas laid onto a snapshot give the snapshot that was not taken, byte for byte."""

from __future__ import annotations

from random import Random

import orjson
import pytest

from processor.app.interpret import interpret
from processor.engine.conversation import Conversation
from processor.engine.mark import Mark
from processor.engine.snapshot import SnapshotFormatError, dump, load
from processor.engine.snapshot_delta import delta, mark_of
from processor.evidence.fold import Refused, advance
from processor.interpreter.native import NATIVE
from processor.interpreter.port import Reading
from processor.scenarios import NAMES, utterances
from schemas.log import InterpretationFailed
from schemas.utterance import Utterance
from schemas.wire import decode_utterance
from tests.strategies_streams import ONE_CONVERSATION, seeded_stream

EVERY = 3


class Chain:
    """A snapshot, and a delta after every few events of a conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self._base = dump(conversation)
        self._mark: Mark = mark_of(conversation)
        self._deltas: list[bytes] = []
        self.taken = 0

    def take(self) -> None:
        """Take a delta, and see that the chain is the conversation; now and then, begin anew."""
        self._deltas.append(delta(self.conversation, self._mark))
        self._mark = mark_of(self.conversation)
        loaded = load(self._base, deltas=self._deltas)
        assert dump(loaded) == dump(self.conversation)
        assert loaded.state_digest() == self.conversation.state_digest()
        assert loaded.digest == self.conversation.digest
        self.taken += 1
        if self.taken % 7 == 0:
            self.conversation = load(dump(self.conversation))
        if self.taken % 11 == 0:
            self._base, self._deltas = dump(self.conversation), []


def say(conversation: Conversation, utterance: Utterance, **how: object) -> None:
    """Fold what an utterance becomes, if it becomes anything."""
    event = interpret(conversation, utterance, **how)  # type: ignore[arg-type]
    if not isinstance(event, tuple):
        assert not isinstance(advance(conversation, event), Refused)


@pytest.mark.parametrize("seed", range(12))
def test_deltas_of_random_conversations(seed: int) -> None:
    """With refusals, revisions, disputes and problems, and for conversations read again."""
    first, *stream = seeded_stream(seed, 120, ONE_CONVERSATION)
    conversation = Conversation.empty(*ONE_CONVERSATION[0])
    say(conversation, decode_utterance(orjson.dumps(first)))
    chain = Chain(conversation)
    for number, said in enumerate(stream):
        say(chain.conversation, decode_utterance(orjson.dumps(said)))
        if number % EVERY == 0:
            chain.take()
    assert chain.taken == 40


@pytest.mark.parametrize("name", NAMES)
def test_deltas_of_scenarios(name: str) -> None:
    """With formulas, audiences and awareness, and after each single event."""
    lines = list(utterances(name))
    conversation = Conversation.empty(lines[0].tenant_id, lines[0].conversation_id)
    say(conversation, lines[0])
    chain = Chain(conversation)
    for utterance in lines[1:]:
        say(chain.conversation, utterance)
        chain.take()
    assert chain.taken >= 4


def test_turns_that_are_missing_and_filled_later() -> None:
    """What could not be read, and is read when other deltas were taken, is where it belongs."""
    chance = Random(1)
    chain = Chain(Conversation.empty("default", "c"))
    missing: list[tuple[int, Utterance]] = []
    for number in range(1, 60):
        said = {
            "conversation_id": "c",
            "utterance_id": f"u{number}",
            "speaker": "ann",
            "at": "2026-03-01T02:31:00Z",
            "text": "something",
        }
        atom = {"entity": "ann", "attribute": "home", "value": f"v{number % 4}"}
        seen = {"op": "observe", "record": f"o{number}", "claim": "x", "atoms": [atom]}
        read = decode_utterance(orjson.dumps({**said, "operations": [seen]}))
        silent = decode_utterance(orjson.dumps(said))
        if missing and chance.random() < 0.4:
            turn, late = missing.pop(chance.randrange(len(missing)))
            reading = Reading(NATIVE, read.operations or (), None)
            say(chain.conversation, late, reading=reading, fills_turn=turn)
        elif chance.random() < 0.6:
            say(chain.conversation, silent)
            missing.append((chain.conversation.turn, silent))
        else:
            say(chain.conversation, read)
        if number % EVERY == 0:
            chain.take()
    assert chain.conversation.missing
    assert len(chain.conversation.missing) < chain.conversation.turn / 2


def test_a_delta_onto_another_event_is_refused() -> None:
    """It is never laid onto what it does not rest on."""
    conversation = Conversation.empty("default", "c")
    before, mark = dump(conversation), mark_of(conversation)
    changed = delta(conversation, mark._replace(sequence=3))
    with pytest.raises(SnapshotFormatError, match="onto event 3"):
        load(before, deltas=[changed])


def test_a_failed_reading_is_what_the_missing_turns_are() -> None:
    """The statements without operations of the test above are kept as turns to be filled."""
    conversation = Conversation.empty("default", "c")
    said = {"conversation_id": "c", "utterance_id": "u", "speaker": "a", "text": "x"}
    utterance = decode_utterance(orjson.dumps({**said, "at": "2026-03-01T02:31:00Z"}))
    assert isinstance(interpret(conversation, utterance), InterpretationFailed)
