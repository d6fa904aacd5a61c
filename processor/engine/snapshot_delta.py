"""What a conversation has become since a snapshot: a delta, which costs what has changed.

A delta rests on the snapshot or delta before it, the base. It holds what is new in the parts that
only grow, and says of the others which values took another's place. Laid onto the fields of the
base, deltas give the fields of the snapshot that was not taken.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

from processor.engine.canonical import dispute_values, problem_posed, record_introduction
from processor.engine.conversation import Conversation
from processor.engine.mark import Mark
from processor.engine.record import Record
from schemas.wire import canonical_bytes, canonical_list

DELTA_FORMAT = 1_002
"""Of a delta onto a snapshot of format 2; no snapshot has a number that high."""
_WHOLE = ("sequence", "turn", "digest", "is_erased", "roles", "policies")
"""What is small and comes anew with each delta."""
_GROWING = ("utterances", "atom_sources", "attacks", "problems", "disputes", "records")
Fields: TypeAlias = dict[str, Any]


def mark_of(conversation: Conversation) -> Mark:
    """Remember how far the conversation is, not before its setup: that has no turn of its own."""
    state = conversation.state
    return Mark(
        sequence=conversation.sequence,
        turn=conversation.turn,
        utterances=len(conversation.utterances),
        records=len(state.records),
        attacks=len(state.attacks),
        atom_sources=len(conversation.atom_sources),
        disputes=len(state.disputes),
        missing=dict(conversation.missing),
        answers=[len(problem.answers) for problem in state.problems.values()],
        awareness=_awareness(conversation),
        update_turns=array("q", (update.turn for update in state.model.updates())),
    )


def delta(conversation: Conversation, mark: Mark) -> bytes:
    """What has changed since the mark, as canonical bytes."""
    state = conversation.state
    filled = [turn for turn in mark.missing if turn not in conversation.missing]
    problems = list(state.problems.values())
    return canonical_bytes(
        {
            "format": DELTA_FORMAT,
            "base": mark.sequence,
            "tenant_id": conversation.tenant_id,
            "conversation_id": conversation.conversation_id,
            "sequence": conversation.sequence,
            "turn": conversation.turn,
            "digest": conversation.digest,
            "is_erased": conversation.is_erased,
            "roles": list(state.roles.items()),
            "policies": [state.own_policy, state.tenant_policy],
            "utterances": list(_utterances(conversation, mark, filled)),
            "filled": filled,
            "missing": [each for each in conversation.missing.items() if each[0] > mark.turn],
            "atom_sources": [
                [turn, *source]
                for turn, source in islice(
                    conversation.atom_sources.items(), mark.atom_sources, None
                )
            ],
            "attacks": list(islice(state.attacks, mark.attacks, None)),
            "problems": [
                [*problem_posed(each), list(each.answers)] for each in problems[len(mark.answers) :]
            ],
            "answers": [
                [place, problems[place].answers[count:]]
                for place, count in enumerate(mark.answers)
                if len(problems[place].answers) > count
            ],
            "disputes": [dispute_values(each) for each in state.disputes[mark.disputes :]],
            "cleared": [
                [place, dispute.cleared_turn]
                for place, dispute in enumerate(state.disputes[: mark.disputes])
                if dispute.cleared_turn is not None and dispute.cleared_turn > mark.turn
            ],
            "awareness": [
                [place, value]
                for place, value in enumerate(_awareness(conversation))
                if place >= len(mark.awareness) or value != mark.awareness[place]
            ],
            **_records(state.records.values(), mark),
            **_updates(conversation, mark),
        }
    )


def lay_on(base: Fields, changed: Fields) -> None:
    """Make the fields of a base those of the conversation at the delta."""
    for name in _WHOLE:
        base[name] = changed[name]
    for place, answers in changed["answers"]:
        base["problems"][place][-1] += answers
    for place, cleared_turn in changed["cleared"]:
        base["disputes"][place][-1] = cleared_turn
    for position, entries in changed["trails"]:
        base["records"][position][-1] += entries
    for name in _GROWING:
        base[name] += changed[name]  # an utterance that stands twice counts as said last
    for place, value in changed["awareness"]:
        base["awareness"][place : place + 1] = [value]
    filled = set(changed["filled"])
    missing = (each for each in base["missing"] if each[0] not in filled)
    base["missing"] = [*missing, *changed["missing"]]
    if changed["contracted"]:
        base["updates"] = list(_without_contracted(base["updates"], dict(changed["contracted"])))
    base["updates"] += changed["updates"]


def _awareness(conversation: Conversation) -> list[object]:
    awareness = conversation.state.awareness
    return [awareness.canonical(proposition) for proposition in awareness.propositions()]


def _utterances(
    conversation: Conversation, mark: Mark, filled: Iterable[int]
) -> Iterator[tuple[str, str]]:
    """Those that came since, and again those of turns that were missing."""
    for turn in filled:
        id_ = mark.missing[turn]
        yield id_, conversation.utterances[id_].hex()
    for id_, digest in islice(conversation.utterances.items(), mark.utterances, None):
        yield id_, digest.hex()


def _records(records: Iterable[Record], mark: Mark) -> Fields:
    """The new ones, and what was added to the trails of the others."""
    rest = iter(records)
    trails = [
        [record.position, [tuple(entry) for entry in record.trail if entry.turn > mark.turn]]
        for record in islice(rest, mark.records)
        if record.trail and record.trail[-1].turn > mark.turn
    ]
    born = [
        [*record_introduction(record), [tuple(entry) for entry in record.trail]] for record in rest
    ]
    return {"records": canonical_list(born), "trails": trails}


def _updates(conversation: Conversation, mark: Mark) -> Fields:
    """The new ones, and what is left of those turns of which some were contracted."""
    model = conversation.state.model
    turns = [update.turn for update in model.updates()]
    kept = bisect_right(turns, mark.turn)
    contracted: list[int] = []
    if kept < len(mark.update_turns):
        left = Counter(turns[:kept])
        counts = Counter(mark.update_turns)
        contracted = [turn for turn, count in counts.items() if left[turn] < count]
    new = islice(model.updates(), kept, None)
    return {
        "updates": canonical_list(update.to_canonical() for update in new),
        "contracted": [
            [turn, [update.to_canonical() for update in model.updates_of_turn(turn)]]
            for turn in contracted
        ],
    }


def _without_contracted(updates: list[Any], left: dict[int, list[Any]]) -> Iterator[Any]:
    for update in updates:
        if update[0] not in left:
            yield update
        else:
            yield from left[update[0]]
            left[update[0]] = []
