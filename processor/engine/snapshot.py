"""A conversation as canonical bytes and back: what stores keep so that a log need not be refolded.

The bytes hold what cannot be told from anything else: what each record was introduced with, its
trail, problems, disputes, the model's log and awareness. Links, standings, commitments and the
grounded flags are rebuilt from that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from processor.engine.canonical import dispute_values, problem_posed, record_introduction
from processor.engine.conversation import Conversation
from processor.engine.grounding import push_core, push_strict
from processor.engine.implied import AtomSource
from processor.engine.plausibility.bounds import Bounds
from processor.engine.plausibility.formula import from_wire
from processor.engine.plausibility.update import Update
from processor.engine.record import Happening, LinkKind, Record, RecordKind, TrailEntry
from processor.engine.snapshot_delta import lay_on
from processor.engine.state import Dispute, Problem, State
from schemas.derived import Standing
from schemas.evidence import Supersession
from schemas.policy import Policy
from schemas.wire import (
    canonical_bytes,
    canonical_list,
    decode_atoms,
    decode_formula,
    decode_json,
    decode_policy,
)

SNAPSHOT_FORMAT = 2
"""Part of every snapshot; one of another format is not read but folded again from the log."""


_WITHOUT_ROLE = 12
"""Values of a record that was introduced under rules without roles, its trail included."""
_RECORD_KINDS = {kind.value: kind for kind in RecordKind}
"""A look-up costs a twentieth of what calling the enumeration does."""


class SnapshotFormatError(ValueError):
    """The bytes are a snapshot of another format."""


@final
@dataclass(frozen=True, slots=True)
class Capture:
    """A conversation at one moment, quickly taken; `encode` may follow on another thread.

    What a record was introduced with does not change and its trail only grows, so a record and the
    length of its trail say all there is; what does change is copied.
    """

    head: dict[str, Any]
    utterances: list[tuple[str, bytes]]
    records: list[tuple[Record, int]]
    updates: list[Update]


def capture(conversation: Conversation) -> Capture:
    """Take hold of the conversation as it is now, between two transitions."""
    state = conversation.state
    head = {
        "format": SNAPSHOT_FORMAT,
        "tenant_id": conversation.tenant_id,
        "conversation_id": conversation.conversation_id,
        "sequence": conversation.sequence,
        "turn": conversation.turn,
        "digest": conversation.digest,
        "is_erased": conversation.is_erased,
        "missing": list(conversation.missing.items()),
        "atom_sources": [[turn, *source] for turn, source in conversation.atom_sources.items()],
        "roles": list(state.roles.items()),
        "policies": [state.own_policy, state.tenant_policy],
        "attacks": list(state.attacks),
        "problems": [
            [*problem_posed(problem), list(problem.answers)] for problem in state.problems.values()
        ],
        "disputes": [dispute_values(dispute) for dispute in state.disputes],
        "awareness": [
            state.awareness.canonical(proposition) for proposition in state.awareness.propositions()
        ],
    }
    return Capture(
        head,
        list(conversation.utterances.items()),
        [(record, len(record.trail)) for record in state.records.values()],
        list(state.model.updates()),
    )


def encode(captured: Capture) -> bytes:
    """What was captured as canonical bytes."""
    return canonical_bytes(
        {
            **captured.head,
            "utterances": [(utterance, digest.hex()) for utterance, digest in captured.utterances],
            "records": canonical_list(
                [*record_introduction(record), [tuple(entry) for entry in record.trail[:length]]]
                for record, length in captured.records
            ),
            "updates": canonical_list(update.to_canonical() for update in captured.updates),
        }
    )


def dump(conversation: Conversation) -> bytes:
    """The conversation as canonical bytes."""
    return encode(capture(conversation))


def load(stored: bytes, bounds: Bounds | None = None, deltas: Iterable[bytes] = ()) -> Conversation:
    """The conversation again, as deltas one on the other leave it.

    Raises SnapshotFormatError for bytes of another format.
    """
    fields: Any = decode_json(stored)
    if not isinstance(fields, dict) or fields.get("format") != SNAPSHOT_FORMAT:
        raise SnapshotFormatError(f"not a snapshot of format {SNAPSHOT_FORMAT}")
    for each in deltas:
        changed: Any = decode_json(each)
        if changed["base"] != fields["sequence"]:
            raise SnapshotFormatError(f"a delta onto event {changed['base']}, not onto this one")
        lay_on(fields, changed)
    conversation = Conversation(
        tenant_id=fields["tenant_id"],
        conversation_id=fields["conversation_id"],
        state=_load_state(fields, bounds),
        sequence=fields["sequence"],
        turn=fields["turn"],
        digest=fields["digest"],
        is_erased=fields["is_erased"],
        utterances={id_: bytes.fromhex(digest) for id_, digest in fields["utterances"]},
        missing=dict(fields["missing"]),
        atom_sources={turn: _load_source(*told) for turn, *told in fields["atom_sources"]},
    )
    conversation.digests.absorb_all(conversation.state)
    return conversation


def _load_source(
    speaker: str,
    role: str,
    told_turn: int,
    supersession: str,
    protected: list[str],
    powerless: list[tuple[str, str]],
) -> AtomSource:
    return AtomSource(
        speaker,
        role,
        told_turn,
        Supersession(supersession),
        tuple(protected),
        tuple((new, ahead) for new, ahead in powerless),
    )


def _load_state(fields: dict[str, Any], bounds: Bounds | None) -> State:
    state = State(bounds)
    state.roles = dict(fields["roles"])
    state.own_policy, state.tenant_policy = map(_load_policy, fields["policies"])
    for stored in fields["records"]:
        _load_record(state, stored)
    for record, stored in zip(state.records.values(), fields["records"], strict=True):
        _load_trail(state, record, stored[-1])
    for record in state.records.values():
        if not record.stands:
            push_strict(record, [])
            push_core(record, [])
    state.attacks = dict.fromkeys((attacker, target) for attacker, target in fields["attacks"])
    for id_, text, about, speaker, turn, is_question, answers in fields["problems"]:
        state.problems[id_] = Problem(id_, text, tuple(about), speaker, turn, is_question, answers)
    for place, stored in enumerate(fields["disputes"]):
        observation, contradicts, opened, cleared = stored
        dispute = Dispute(observation, tuple(contradicts), opened, cleared)
        state.disputes.append(dispute)
        if cleared is None:
            for side in dispute.sides():
                state.disputed.setdefault(side, []).append(place)
    for stored in fields["updates"]:
        state.model.append(Update.from_canonical(stored))
    for stored in fields["awareness"]:
        state.awareness.restore(stored)
    return state


def _load_policy(stored: Any) -> Policy | None:
    return None if stored is None else decode_policy(canonical_bytes(stored))


def _load_record(state: State, stored: list[Any]) -> None:
    id_, claim, kind, op, speaker, turn, audience, formula, atoms, answers, premises = stored[:11]
    role = stored[11] if len(stored) > _WITHOUT_ROLE else None
    supports = tuple([state.records[premise] for premise in premises])
    record = Record(  # by position: names would double what it costs
        id_,
        claim,
        _RECORD_KINDS[kind],
        op,
        speaker,
        turn,
        None if audience is None else tuple(audience),
        None if formula is None else from_wire(decode_formula(canonical_bytes(formula))),
        decode_atoms(canonical_bytes(atoms)) if atoms else (),
        tuple(answers),
        supports,
        len(state.records),
        role,
    )
    state.records[id_] = record
    state.introduced.setdefault(speaker, []).append(record)
    state.link_count += len(supports)
    for support in supports:
        support.add_dependent(record)


def _load_trail(state: State, record: Record, stored: list[Any]) -> None:
    for happening, turn, op, by, speaker, value in stored:
        entry = TrailEntry(Happening(happening), turn, op, by, speaker, value)
        record.add_to_trail(entry)
        match entry.happening:
            case Happening.LINKED:
                corroborates = value == LinkKind.CORROBORATION
                record.add_support(state.records[by], corroborates=corroborates)
                state.link_count += 1
            case Happening.STANDING:
                record.standing = Standing(value)
            case Happening.COMMITMENT_ENDED:
                record.committed = False
            case _:
                pass
    record.grounded = record.core_grounded = True
