"""Given / when / then for the engine: operations as plain objects, one statement at a time."""

from __future__ import annotations

from typing import Any

import orjson

from processor.app.interpret import interpret
from processor.app.tenants import PLAIN, Tenants
from processor.engine.conversation import Conversation
from processor.engine.plausibility.bounds import Bounds
from processor.engine.rules_version import CURRENT_RULES
from processor.evidence.fold import Folded, fold
from schemas.derived import DerivedEvent, TurnEvent
from schemas.log import LogEvent
from schemas.wire import decode_utterance

Json = dict[str, Any]


class Given:
    """One conversation to which things are said."""

    def __init__(
        self,
        bounds: Bounds | None = None,
        rules_version: int = CURRENT_RULES,
        tenants: Tenants = PLAIN,
    ) -> None:
        self.conversation = Conversation.empty("default", "c", bounds)
        self.rules_version = rules_version
        self.tenants = tenants
        self.count = 0

    def utter(self, **fields: object) -> tuple[DerivedEvent, ...]:
        """Fold one utterance with these fields and give back what it brought about."""
        return self._folded(fields)[1]

    def logged(self, **fields: object) -> LogEvent:
        """Fold one utterance with these fields and give back its event."""
        return self._folded(fields)[0]

    def _folded(self, fields: Json) -> tuple[LogEvent, tuple[DerivedEvent, ...]]:
        self.count += 1
        utterance = {
            "conversation_id": "c",
            "utterance_id": f"u{self.count}",
            "speaker": "ann",
            "at": "2026-03-01T02:31:00Z",
            **fields,
        }
        event = interpret(
            self.conversation,
            decode_utterance(orjson.dumps(utterance)),
            self.rules_version,
            tenants=self.tenants,
        )
        assert not isinstance(event, tuple), event
        folded = fold(self.conversation, event)
        assert isinstance(folded, Folded), folded
        return event, folded.events

    def say(self, *operations: Json, **fields: object) -> TurnEvent:
        """Fold one statement and give back its turn event."""
        turn = self.utter(operations=list(operations), **fields)[0]
        assert isinstance(turn, TurnEvent)
        return turn

    def refused(self, *operations: Json, **fields: object) -> list[tuple[int, str]]:
        """Index and code of each refused operation of one statement."""
        turn = self.say(*operations, **fields)
        return [(rejection.index, rejection.code.value) for rejection in turn.rejections]


def observe(record: str, *premises: object, **fields: object) -> Json:
    """An observation."""
    return {"op": "observe", "record": record, "claim": record, "premises": premises, **fields}


def hypothesize(record: str, *premises: object, **fields: object) -> Json:
    """A hypothesis."""
    return {"op": "hypothesize", "record": record, "claim": record, "premises": premises, **fields}


def inline(record: str, *premises: object, **fields: object) -> Json:
    """A record introduced where it is cited."""
    return {"record": record, "claim": record, "premises": premises, **fields}


def support(target: str, evidence: object, **fields: object) -> Json:
    """Evidence for a record."""
    return {"op": "support", "target": target, "evidence": evidence, **fields}


def undermine(target: str, evidence: object, **fields: object) -> Json:
    """Evidence against a record."""
    return {"op": "undermine", "target": target, "evidence": evidence, **fields}


def revise(target: str, by: object, **fields: object) -> Json:
    """A record given up because of another."""
    return {"op": "revise", "target": target, "by": by, **fields}


def resolve(target: str, **fields: object) -> Json:
    """A record settled on by authority, unless told otherwise."""
    return {"op": "resolve", "target": target, "mode": "authoritative", **fields}


def question(id_: str, *about: str) -> Json:
    """An open problem."""
    return {"op": "question", "question": id_, "text": "?", "about": about}


def expand(proposition: str, **fields: object) -> Json:
    """A proposition brought to mind."""
    return {"op": "expand_awareness", "proposition": proposition, **fields}
