"""The real engine behind the interface of the naive one: plain utterances in, plain events out."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from processor.app.interpret import AlreadyInLog, Unusable, interpret
from processor.engine.conversation import Conversation
from processor.engine.record import Happening
from processor.engine.record import Record as EngineRecord
from processor.engine.snapshot import dump, load
from processor.engine.state import State
from processor.evidence.fold import Folded, fold
from schemas.contract import Contract
from schemas.derived import DerivedEvent
from schemas.log import LogEvent
from schemas.wire import canonical_bytes, decode_utterance
from tests.oracles.naive_map import Change, Json, Map, Record

Key = tuple[str, str]
_NOT_COMPARED = ("event_id", "digest", "state_digest", "message", "notes", "disputed")


class EngineDriver:
    """All conversations, each by its tenant and id."""

    def __init__(self) -> None:
        self.conversations: dict[Key, Conversation] = {}

    def say(self, utterance: Json) -> list[Json]:
        """The derived events of one utterance, reduced to what the naive engine says."""
        return [plain(event) for event in self.fold(utterance)]

    def fold(self, utterance: Json) -> tuple[DerivedEvent, ...]:
        """The derived events of one utterance; none if it cannot be appended to the log."""
        key = (utterance.get("tenant_id", "default"), utterance["conversation_id"])
        conversation = self.conversation(key)
        event = next_event(conversation, utterance)
        if event is None:
            return ()
        done = fold(conversation, event)
        assert isinstance(done, Folded), done
        return done.events

    def conversation(self, key: Key) -> Conversation:
        """The conversation of this key, empty if nothing was said in it."""
        return self.conversations.setdefault(key, Conversation.empty(*key))

    def restart(self) -> None:
        """Go on from bytes, as another process would."""
        self.conversations = {key: load(dump(c)) for key, c in self.conversations.items()}

    def digests(self) -> dict[Key, tuple[str, str]]:
        """Each conversation's digest of the log and of the state."""
        return {key: (c.digest, c.state_digest()) for key, c in self.conversations.items()}


def next_event(conversation: Conversation, utterance: Json) -> LogEvent | None:
    """The log event of an utterance, or None if it cannot be appended to the log."""
    event = interpret(conversation, decode_utterance(orjson.dumps(utterance)))
    return None if isinstance(event, AlreadyInLog | Unusable) else event


def folded(stream: Iterable[Json]) -> EngineDriver:
    """The engine after a whole stream."""
    driver = EngineDriver()
    for utterance in stream:
        driver.fold(utterance)
    return driver


def plain(event: DerivedEvent) -> Json:
    """An event with the fields that the naive engine gives too."""
    assert isinstance(event, Contract)
    data: Json = orjson.loads(canonical_bytes(event))
    for name in _NOT_COMPARED:
        data.pop(name, None)
    if data.get("candidate") is not None:
        data["candidate"].pop("text")
    if event.TYPE == "standfast.turn.v1":
        data["failed"] = data["failed"] is not None
        data["rejections"] = [
            {"index": rejection["index"], "code": rejection["code"]}
            for rejection in data["rejections"]
        ]
    return {"type": event.TYPE, "data": data}


def as_map(state: State) -> Map:
    """The state of the engine as a naive map, awareness left out (`is_aware` answers for it)."""
    return Map(
        records={
            record.id: Record(
                kind=record.kind.value,
                speaker=record.speaker,
                turn=record.turn,
                standing=record.standing.value,
                links=tuple((cited.id, kind.value) for cited, kind in record.links()),
                changes=changes(record),
            )
            for record in state.records.values()
        },
        questions=frozenset(p.id for p in state.problems.values() if p.is_question),
        attacks=frozenset(state.attacks),
        commitments=frozenset(
            (agent, record) for agent in state.introduced for record in state.commitments(agent)
        ),
        answers=frozenset(
            (answer, problem.id)
            for problem in state.problems.values()
            for answer in problem.answers
        ),
    )


def changes(record: EngineRecord) -> tuple[Change, ...]:
    """The changes of standing, in order."""
    return tuple(
        Change(str(entry.value), entry.turn, entry.op, entry.by, entry.speaker)
        for entry in record.happened(Happening.STANDING)
    )
