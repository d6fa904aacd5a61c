"""What would fall if records were withdrawn: asked of a state, which stays as it is.

A record is grounded iff everything below it stands, so withdrawing some ungrounds exactly these and
all that rest on them; the grade looks past corroboration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from processor.engine.conversation import Conversation
from processor.engine.record import Record
from processor.engine.retraction import affected, affected_closure, find_record, sorted_ids
from processor.engine.state import State
from processor.engine.verify import grade
from schemas.derived import Grade


@final
class Answer(NamedTuple):
    """How a record is grounded, before and after."""

    record: str
    claim: str
    before: Grade
    after: Grade


@final
class WhatIf(NamedTuple):
    """What withdrawing records would do; all ids ascending.

    `direct`, `transitive` and `in_good_standing` are those of the affected closure. The records of
    `newly_ungrounded` are grounded now and would not be, `corroboration_lost` those of them that
    lose corroboration only; the withdrawn records themselves are not among them. `decisions` are
    those in good standing that somebody may act on. `answers` are of all affected records.
    """

    retracted: tuple[str, ...]
    direct: tuple[str, ...]
    transitive: tuple[str, ...]
    in_good_standing: tuple[str, ...]
    newly_ungrounded: tuple[str, ...]
    corroboration_lost: tuple[str, ...]
    decisions: tuple[str, ...]
    answers: tuple[Answer, ...]


def what_if(state: State, ids: Sequence[str]) -> WhatIf:
    """Imagine that these records were withdrawn. Raises UnknownRecordError."""
    withdrawn = dict.fromkeys(find_record(state, id_) for id_ in ids)
    report = affected(list(withdrawn))
    fallen: dict[Record, None] = {}
    for record in withdrawn:
        if record not in fallen:
            fallen |= affected_closure(record)
    core = _core_closure(withdrawn)
    others = [record for record in fallen if record not in withdrawn]
    newly = [record for record in others if record.grounded]
    touched = sorted({**withdrawn, **fallen}, key=lambda record: record.id)
    return WhatIf(
        sorted_ids(withdrawn),
        *report,
        newly_ungrounded=sorted_ids(newly),
        corroboration_lost=sorted_ids(each for each in newly if each not in core),
        decisions=sorted_ids(each for each in others if each.stands and each.is_decision),
        answers=tuple(
            Answer(each.id, each.claim, grade(each), _after(each, each in core)) for each in touched
        ),
    )


def what_if_view(conversation: Conversation, ids: Sequence[str]) -> dict[str, object]:
    """The same as a JSON value, with the turn it is asked of."""
    imagined = what_if(conversation.state, ids)
    return {
        "turn": conversation.turn,
        **imagined._asdict(),
        "answers": [answer._asdict() for answer in imagined.answers],
    }


def _after(record: Record, in_core: bool) -> Grade:
    if in_core or not record.core_grounded:
        return Grade.UNGROUNDED
    return Grade.CORROBORATION_LOST


def _core_closure(withdrawn: dict[Record, None]) -> dict[Record, None]:
    """The withdrawn records and all that rest on them over links other than corroboration."""
    reached = dict(withdrawn)
    queue = list(reached)
    for current in queue:  # grows while it is gone through
        for dependent in current.dependents:
            if dependent not in reached and dependent not in current.corroborated:
                reached[dependent] = None
                queue.append(dependent)
    return reached
