"""Conversations told for their page, with what the engine said at every turn on the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, get_args

import orjson

from processor.app.interpret import interpret
from processor.engine.conversation import Conversation
from processor.engine.retraction import affected
from processor.engine.verify import closure, grade
from processor.evidence.fold import Folded, fold
from replay.report.data import ReportData, report_bytes
from schemas.log import LogEvent
from schemas.wire import decode_utterance
from tests.strategies_streams import seeded_stream

Json = dict[str, Any]
_LOG_EVENTS = get_args(get_args(LogEvent)[0])


class Told(NamedTuple):
    """The data of a page, and what the engine said after each turn, as JSON values."""

    data: bytes
    turns: dict[int, Json]


def tell(utterances: Iterable[Json], conversation_id: str = "c", *, asked: bool = False) -> Told:
    """Fold the utterances of one conversation for its page; those that fit in no log are passed.

    With `asked`, the engine is asked everything about every record after every turn.
    """
    conversation = Conversation.empty("default", conversation_id)
    data = ReportData()
    turns = {0: _engine_says(conversation)}
    for utterance in utterances:
        event = interpret(conversation, decode_utterance(orjson.dumps(utterance)))
        if isinstance(event, _LOG_EVENTS):
            folded = fold(conversation, event)
            assert isinstance(folded, Folded), folded
            data.take(conversation, event, folded)
            if asked:
                turns[conversation.turn] = _engine_says(conversation)
    return Told(report_bytes(data.value(conversation)), turns)


def told_at_random(seed: int, length: int = 30) -> Told:
    """One random conversation, in which much is refused, weakened, revised and disputed."""
    return tell(seeded_stream(seed, length, [("default", "c")]), asked=True)


def _engine_says(conversation: Conversation) -> Json:
    state = conversation.state
    said: Json = {"records": {}, "open": [each.id for each in state.open_problems()]}
    for record in state.records.values():
        report = affected([record])
        decided = [id_ for id_ in report.in_good_standing if state.records[id_].is_decision]
        said["records"][record.id] = {
            "standing": record.standing,
            "grade": grade(record),
            "disputed": record.id in state.disputed,
            "links": [[support.id, kind] for support, kind in record.links()],
            "affected": {**report._asdict(), "decisions": decided},
            "closure": sorted(closure([record])),
        }
    return orjson.loads(orjson.dumps(said))
