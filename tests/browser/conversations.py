"""A conversation of any size in which all that a page shows happens, the same every time."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

Json = dict[str, Any]

_PLACES = ("the gateway", "the session cache", "the ledger", "the mail queue", "the search index")
_SEEN = (
    "answers with 503 since the last deploy",
    "holds twice as many connections as yesterday",
    "restarts every eleven minutes",
    "writes nothing to its log after midnight",
    "is slow for customers in the north only",
)
_GUESSES = (
    "A retry without a pause fills the pool",
    "The certificate was renewed on one node only",
    "Two jobs take the same lock in another order",
    "The new limit is read as seconds, not milliseconds",
)
_SPEAKERS = ("alice", "bob", "carol", "dmitri")


def busy(records: int, seed: int = 3) -> Iterator[Json]:
    """The utterances of a conversation with about this many records, and drafts in between."""
    chance = Random(seed)
    made = turn = drafts = 0
    recent: list[str] = []
    hypotheses: list[str] = []
    while made < records:
        turn += 1
        operations, new = _operations(chance, turn, recent[-12:], hypotheses[-4:])
        made += len(new)
        recent += new
        hypotheses += [name for name in new if name.startswith("h")]
        yield _said(f"u{turn}", _SPEAKERS[turn % 4], turn, operations=operations)
        if turn % 9 == 0:
            drafts += 1
            claim = {"text": "That explains what we see.", "record": chance.choice(recent[-20:])}
            kind: Json = {"kind": "candidate", "claims": [claim]}
            yield _said(f"draft{drafts}", "assistant", turn, **kind)


def _said(utterance: str, speaker: str, turn: int, **fields: Any) -> Json:
    minute = turn % 1_400
    return {
        "conversation_id": "busy",
        "utterance_id": utterance,
        "speaker": speaker,
        "at": f"2026-03-{1 + turn // 1_400:02}T{minute // 60:02}:{minute % 60:02}:00Z",
        **fields,
    }


def _operations(
    chance: Random, turn: int, recent: list[str], hypotheses: list[str]
) -> tuple[list[Json], list[str]]:
    new: list[str] = []

    def record(letter: str, claim: str) -> Json:
        new.append(f"{letter}{turn}" if f"{letter}{turn}" not in new else f"{letter}{turn}.2")
        return {"record": new[-1], "claim": claim}

    def some(most: int) -> list[str]:
        return sorted(set(chance.choices(recent, k=chance.randint(0, most)))) if recent else []

    seen = f"{chance.choice(_PLACES).capitalize()} {chance.choice(_SEEN)}."
    operations: list[Json] = [{"op": "observe", **record("o", seen), "premises": some(1)}]
    if turn % 3 == 0:
        guess = f"{chance.choice(_GUESSES)}."
        assumed = record("a", "Nothing else changed in that hour.")
        operations.append(
            {"op": "hypothesize", **record("h", guess), "premises": [*some(2), assumed]}
        )
    if turn % 4 == 1 and hypotheses:
        evidence = record("e", "A second look points the same way.")
        operations.append(
            {"op": "support", "target": chance.choice(hypotheses), "evidence": evidence}
        )
    if turn % 11 == 5 and hypotheses:
        evidence = record("e", "It also happens where that cannot be the cause.")
        operations.append({"op": "undermine", "target": hypotheses[0], "evidence": evidence})
    if turn % 17 == 8 and recent:
        by = record("n", "That was read from the wrong dashboard.")
        operations.append({"op": "revise", "target": chance.choice(recent), "by": by})
    if turn % 13 == 0 and hypotheses:
        decision = record("d", "Roll the change back and watch for an hour.")
        operations.append(
            {
                "op": "resolve",
                "target": hypotheses[-1],
                "mode": "authoritative",
                "decision": decision,
            }
        )
    if turn % 16 == 2:
        operations.append({"op": "question", "question": f"q{turn}", "text": "What sets it off?"})
    return operations, new
