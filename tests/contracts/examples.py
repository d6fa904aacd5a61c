"""One realistic example of each event type, as it stands on the wire, all fields given."""

from __future__ import annotations

import copy
from typing import Any

Document = dict[str, Any]

_DIGEST = "0f" * 32
_PROVENANCE = {
    "interpreter": "recorded",
    "model": "reader-2",
    "prompt_id": "interpret",
    "prompt_hash": _DIGEST,
    "parameters": {"temperature": "0"},
    "attempts": 2,
    "tokens_in": 812,
    "tokens_out": 96,
    "milliseconds": 1_430,
    "rejections": [
        {
            "index": 1,
            "code": "unknown_reference",
            "reason": "there is no record r9",
            "records": ["r9"],
        }
    ],
}
_LOGGED = {
    "tenant_id": "harbour",
    "conversation_id": "crane-3",
    "sequence": 7,
    "rules_version": 1,
    "utterance": {
        "id": "u-7",
        "digest": _DIGEST,
        "topic": "utterances",
        "partition": 4,
        "offset": 1_207,
    },
    "speaker": "mira",
    "role": "user",
    "at": "2026-03-01T02:31:00Z",
    "audience": ["mira", "jon"],
    "provenance": _PROVENANCE,
}
_OPERATIONS = [
    {
        "op": "expand_awareness",
        "proposition": "brake_worn",
        "agents": ["jon"],
        "record": "p1",
        "claim": "The brake may be worn.",
        "reclassifies": "o1",
        "speaker": "jon",
    },
    {
        "op": "observe",
        "record": "o2",
        "claim": "The hook drops two centimetres under load.",
        "premises": ["o1", {"record": "a1", "claim": "The scale was calibrated."}],
        "formula": {
            "node": "implies",
            "antecedent": {"node": "atom", "name": "load"},
            "consequent": {
                "node": "and",
                "parts": [
                    {"node": "not", "formula": {"node": "atom", "name": "holds"}},
                    {"node": "constant", "value": True},
                ],
            },
        },
        "atoms": [
            {
                "entity": "crane 3",
                "attribute": "drop",
                "facet": "under load",
                "value": "2 cm",
                "polarity": True,
                "valid_from": "2026-03-01",
                "valid_to": None,
                "relation": "supersedes",
                "of": ["o1"],
            }
        ],
        "speaker": None,
    },
    {
        "op": "hypothesize",
        "record": "h1",
        "claim": "A worn brake lets the hook drop.",
        "premises": ["o2"],
        "explains": ["o2"],
        "formula": "brake_worn & (brake_worn -> drops)",
        "speaker": None,
    },
    {
        "op": "support",
        "target": "h1",
        "evidence": {"record": "e1", "claim": "The lining is thin.", "premises": []},
        "specific": True,
        "speaker": None,
    },
    {"op": "undermine", "target": "h0", "evidence": "o2", "contrast": True, "speaker": None},
    {"op": "revise", "target": "h0", "by": "h1", "negates": False, "speaker": None},
    {
        "op": "resolve",
        "target": "h1",
        "mode": "authoritative",
        "subsumes": ["o2"],
        "premises": ["a1"],
        "answers": ["q1"],
        "decision": {"record": "d1", "claim": "Take the crane out of service."},
        "dissent": [{"agent": "jon", "reason": "One more test first."}],
        "speaker": None,
    },
    {"op": "question", "question": "q2", "text": "Since when?", "about": ["o2"], "speaker": None},
]
_DERIVED = {
    "tenant_id": "harbour",
    "conversation_id": "crane-3",
    "turn": 5,
    "sequence": 7,
    "event_id": _DIGEST,
}
_CANDIDATE = {
    "utterance_id": "u-8",
    "claim_index": 0,
    "text": "So we stop the crane.",
    "records": ["d1"],
}

_EXAMPLES: dict[str, Document] = {
    "standfast.utterance.v1": {
        "tenant_id": "harbour",
        "conversation_id": "crane-3",
        "utterance_id": "u-7",
        "speaker": "mira",
        "role": "user",
        "text": "It drops two centimetres; I think the brake is worn.",
        "at": "2026-03-01T02:31:00Z",
        "kind": "statement",
        "audience": ["mira", "jon"],
        "operations": _OPERATIONS,
        "claims": None,
        "metadata": {"channel": "radio", "line": 3, "urgent": True, "level": 0.5, "note": None},
        "setup": None,
        "agents": None,
        "variables": None,
        "observes": None,
        "policy": None,
    },
    "standfast.operations.v1": {
        **_LOGGED,
        "type": "standfast.operations.v1",
        "turn": 5,
        "operations": _OPERATIONS,
        "fills_turn": 3,
        "supersession": "explicit",
    },
    "standfast.interpretation_failed.v1": {
        **_LOGGED,
        "type": "standfast.interpretation_failed.v1",
        "turn": 5,
        "reason": "no valid reply after three attempts",
    },
    "standfast.candidate.v1": {
        **_LOGGED,
        "type": "standfast.candidate.v1",
        "claims": [
            {"text": "So we stop the crane.", "record": "d1", "records": None},
            {"text": "The brake is worn.", "record": None, "records": ["h1", "e1"]},
        ],
    },
    "standfast.setup.v1": {
        **_LOGGED,
        "type": "standfast.setup.v1",
        "setup": {
            "agents": [{"id": "mira", "role": "user"}],
            "variables": ["holds"],
            "observes": {"mira": ["holds"]},
            "policy": None,
        },
    },
    "standfast.conversation_erased.v1": {**_LOGGED, "type": "standfast.conversation_erased.v1"},
    "standfast.turn.v1": {
        **_DERIVED,
        "utterance_id": "u-7",
        "applied": [0, 1, 2],
        "rejections": [
            {"index": 3, "code": "target_abandoned", "reason": "h0 is abandoned", "records": ["h0"]}
        ],
        "ungrounded": ["h0"],
        "failed": None,
        "notes": [{"code": "negation_skipped", "text": "h0 could not be false", "records": ["h0"]}],
        "digest": _DIGEST,
        "state_digest": _DIGEST,
    },
    "standfast.verdict.v1": {
        **_DERIVED,
        "candidate": _CANDIDATE,
        "record": None,
        "outcome": "ungrounded",
        "grade": "corroboration_lost",
        "support": [],
        "failures": [
            {
                "record": "e1",
                "standing": "abandoned",
                "since_turn": 4,
                "cause": {"op": "revise", "by": "o3", "speaker": "jon"},
                "path": ["d1", "h1", "e1"],
                "path_omitted": 0,
            }
        ],
        "support_complete": True,
        "failures_complete": True,
        "reason": "withdrawn_support",
        "disputed": [],
        "coverage": {"complete": False, "missing_turns": [2], "missing_count": 1},
        "digest": _DIGEST,
    },
    "standfast.retraction_impact.v1": {
        **_DERIVED,
        "withdrawn": "e1",
        "standing": "abandoned",
        "cause": "revise",
        "by": "o3",
        "direct": ["h1"],
        "transitive": ["d1", "h1"],
        "in_good_standing": ["d1", "h1"],
        "complete": True,
        "newly_ungrounded": ["d1", "h1"],
        "decisions": ["d1"],
        "message": "d1 and h1 rested on e1",
    },
    "standfast.ungrounded_alert.v1": {
        **_DERIVED,
        "record": "d1",
        "candidate": None,
        "severity": "warning",
        "reason": "withdrawn_support",
        "message": "d1 no longer rests on standing ground",
    },
    "standfast.context_update.v1": {**_DERIVED, "text": "e1 was withdrawn; d1 rested on it."},
}
EVENT_TYPES = tuple(_EXAMPLES)


def example(event_type: str) -> Document:
    """A copy of the example that the caller may change."""
    return copy.deepcopy(_EXAMPLES[event_type])


def changed(event_type: str, place: str, value: object) -> Document:
    """The example with the field at a dotted place set; the last part may be a new key."""
    document = example(event_type)
    *path, last = place.split(".")
    here: Any = document
    for part in path:
        here = here[int(part) if isinstance(here, list) else part]
    here[int(last) if isinstance(here, list) else last] = value
    return document


def without(event_type: str, place: str) -> Document:
    """The example with the field at a dotted place removed."""
    document = example(event_type)
    *path, last = place.split(".")
    here: Any = document
    for part in path:
        here = here[int(part) if isinstance(here, list) else part]
    del here[last]
    return document
