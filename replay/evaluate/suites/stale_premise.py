"""`stale-premise`: fifty conversations of our own, each with a draft to be checked at the end.

In fifteen a premise is withdrawn early and the talk goes on. `closure` is the check of the engine.
`one_step` looks at the records that the draft names and at what these rest on directly. `window`
knows of withdrawals in the last turns alone, as a reader with a short memory does.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, final

from processor.engine.conversation import Conversation
from processor.engine.record import Record
from processor.engine.verify import closure, verify
from replay.evaluate.adapters import moment
from replay.evaluate.benchmark import Benchmark, Contrast, Item, Scores, Workload
from replay.evaluate.folding import fold_native
from replay.evaluate.suites.affected import CLOSURE, ONE_STEP
from schemas.contract import Contract
from schemas.derived import Outcome, Standing
from schemas.operations import Operation
from schemas.utterance import Utterance
from schemas.wire import decode_contract

WINDOW = "window"
WINDOW_TURNS = 6
EARLY, OTHER = "withdrawn early", "other"


@final
class Spoken(Contract):
    """One turn of a conversation of the set."""

    speaker: str
    text: str
    operations: tuple[Operation, ...]


@final
class Draft(Contract):
    """What is to be checked at the end, and the records that it rests on."""

    text: str
    records: tuple[str, ...]


@final
class Conversed(Contract):
    """One conversation of the set, and whether its draft is grounded."""

    id: str
    kind: str
    turns: tuple[Spoken, ...]
    candidate: Draft
    gold: Literal["grounded", "ungrounded"]
    withdrawn_early: bool

    def utterances(self) -> tuple[Utterance, ...]:
        """The turns, each with its operations."""
        return tuple(
            Utterance(
                conversation_id=self.id,
                utterance_id=f"u{place}",
                speaker=turn.speaker,
                text=turn.text,
                at=moment(place),
                operations=turn.operations,
            )
            for place, turn in enumerate(self.turns, 1)
        )


def conversations() -> tuple[Conversed, ...]:
    """The fifty conversations."""
    stored = files("replay.evaluate").joinpath("data/stale_premise.jsonl").read_bytes()
    return tuple(decode_contract(Conversed, line) for line in stored.splitlines())


@final
class StalePremise(Workload):
    """One item per conversation."""

    def __init__(self) -> None:
        found = conversations()
        self._folded = {each.id: fold_native(each.utterances()) for each in found}
        self.items = tuple(
            Item(each.id, EARLY if each.withdrawn_early else OTHER, each) for each in found
        )

    def measure(self, item: Item, arm: str) -> Scores:
        """The verdict beside the gold one: recall on stale drafts, else over-retraction."""
        each: Conversed = item.content
        is_stale = each.gold == "ungrounded"
        says_stale = _says_stale(self._folded[each.id], each.candidate.records, arm)
        return {
            "right": float(says_stale == is_stale),
            "recall" if is_stale else "over_retraction": float(says_stale),
        }


def _says_stale(conversation: Conversation, ids: tuple[str, ...], arm: str) -> bool:
    records = [conversation.state.records[id_] for id_ in ids]
    if arm == CLOSURE:
        return verify(conversation.state, ids).outcome is not Outcome.GROUNDED
    if arm == ONE_STEP:
        looked_at = [*records, *(below for record in records for below in record.supports)]
        return not all(record.stands for record in looked_at)
    since = conversation.turn - WINDOW_TURNS
    return any(_fell_since(each, since) for each in closure(records).values())


def _fell_since(record: Record, turn: int) -> bool:
    fell = [entry.turn for entry in record.trail if entry.op == "revise"]
    return record.standing is Standing.ABANDONED and max(fell) > turn


STALE_PREMISE = Benchmark(
    "stale-premise",
    "Drafts that rest on a premise: does the check see that it was withdrawn?",
    lambda options: StalePremise(),
    (CLOSURE, ONE_STEP, WINDOW),
    "100 % against 93.3 % on 15 conversations with a premise withdrawn early (Grounded "
    "Continuation, first version, on conversations of its own).",
    contrasts=(
        Contrast("reach", "right", CLOSURE, ONE_STEP),
        Contrast("memory", "right", CLOSURE, WINDOW),
    ),
)
