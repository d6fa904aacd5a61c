"""The dependency map in its most obvious form: an immutable value and one function per operation.

This is the oracle of `processor.engine`, written from the specification alone. It is slow on
purpose: nothing is indexed, nothing is kept that can be worked out. An operation is a function
from one map to the next, or it raises `RefusedError`; since a map never changes, a refused
operation cannot leave anything behind. Formulas and evidence atoms are outside its scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.oracles.naive_policy import may, may_decide

Json = dict[str, Any]
"""A JSON object as it stands on the wire."""

GOOD = ("active", "resolved")
EVERYONE = "*"
"""Stands for all agents, later ones included; `*` can be no agent's id."""


class RefusedError(Exception):
    """The operation does not apply; `code` names the first check that failed."""

    def __init__(self, code: str) -> None:
        """Keep the code; it is the whole message."""
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Change:
    """One change of a record's standing: what it became, when, by which operation and whom."""

    standing: str
    turn: int
    op: str
    by: str | None
    speaker: str


@dataclass(frozen=True)
class Record:
    """One argument. `links` holds (supporting record, link kind), each record once."""

    kind: str
    speaker: str
    turn: int
    role: str = "user"
    standing: str = "active"
    links: tuple[tuple[str, str], ...] = ()
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Map:
    """D_t without M: records, questions, Att, Cm, who answers what, awareness."""

    records: dict[str, Record] = field(default_factory=dict)
    questions: frozenset[str] = frozenset()
    attacks: frozenset[tuple[str, str]] = frozenset()
    commitments: frozenset[tuple[str, str]] = frozenset()
    answers: frozenset[tuple[str, str]] = frozenset()
    awareness: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Said:
    """Who says an operation, in which turn, and who hears it (`EVERYONE` alone: all).

    The role is the utterance's, whoever the operation names as its speaker.
    """

    speaker: str
    turn: int
    hearers: frozenset[str]
    role: str
    policy: Json


def apply(before: Map, op: Json, said: Said) -> Map:
    """The map after one operation. Raises RefusedError with the code of the first failing check."""
    rule = {
        "expand_awareness": expand_awareness,
        "observe": observe,
        "hypothesize": hypothesize,
        "support": support,
        "undermine": undermine,
        "revise": revise,
        "resolve": resolve,
        "question": question,
    }[op["op"]]
    return rule(before, op, said)


def expand_awareness(m: Map, op: Json, said: Said) -> Map:
    """Some addressed hearer is not yet aware of the proposition; a record may introduce it."""
    own = op.get("record")
    if own is not None:
        need_new(m, own)
    if op.get("reclassifies") is not None:
        need_record(m, op["reclassifies"])
        need_authority(m, said, "reclassify", op["reclassifies"])
    asked = frozenset(op["agents"]) if op.get("agents") else frozenset({EVERYONE})
    addressed = both(asked, said.hearers)
    if all(is_aware(m, agent, op["proposition"]) for agent in addressed):
        raise RefusedError("already_aware")
    m = made_aware(m, addressed, op["proposition"])
    return m if own is None else registered(m, own, "premise", [], said)


def observe(m: Map, op: Json, said: Said) -> Map:
    """A new observation on its premises."""
    own = op["record"]
    need_new(m, own)
    m, premises = cite_all(m, op.get("premises", []), said, pending=(own,))
    return registered(m, own, "observation", premises, said)


def hypothesize(m: Map, op: Json, said: Said) -> Map:
    """A new hypothesis on its premises; it answers what it explains."""
    own = op["record"]
    need_new(m, own)
    m, premises = cite_all(m, op.get("premises", []), said, pending=(own,))
    for explained in op.get("explains", []):
        need_record_or_question(m, explained)
    m = registered(m, own, "hypothesis", premises, said)
    return answered(m, own, op.get("explains", []))


def support(m: Map, op: Json, said: Said) -> Map:
    """The target gains a corroboration link to evidence in good standing."""
    target = op["target"]
    need_record(m, target)
    if id_of(op["evidence"]) == target:
        raise RefusedError("self_reference")
    if m.records[target].standing == "abandoned":
        raise RefusedError("target_abandoned")
    m, evidence = cite(m, op["evidence"], "evidence", said, pending=())
    if m.records[evidence].standing not in GOOD:
        raise RefusedError("evidence_not_in_good_standing")
    need_authority(m, said, "support", target)
    return linked(m, target, [evidence], "corroboration")


def undermine(m: Map, op: Json, said: Said) -> Map:
    """The evidence attacks an active or weakened target, which is weakened."""
    target = op["target"]
    need_record(m, target)
    if id_of(op["evidence"]) == target:
        raise RefusedError("self_reference")
    if m.records[target].standing == "abandoned":
        raise RefusedError("target_abandoned")
    if m.records[target].standing == "resolved":
        raise RefusedError("target_resolved")
    m, evidence = cite(m, op["evidence"], "evidence", said, pending=())
    need_authority(m, said, "undermine", target)
    m = replace(m, attacks=m.attacks | {(evidence, target)})
    return relabelled(m, target, "weakened", op["op"], evidence, said)


def revise(m: Map, op: Json, said: Said) -> Map:
    """The target is abandoned; its commitment ends if its own speaker revises it."""
    target = op["target"]
    need_record(m, target)
    if id_of(op["by"]) == target:
        raise RefusedError("self_reference")
    m, by = cite(m, op["by"], "evidence", said, pending=())
    need_authority(m, said, "revise", target)
    m = replace(
        m,
        attacks=m.attacks | {(by, target)},
        commitments=m.commitments - {(said.speaker, target)},
    )
    return relabelled(m, target, "abandoned", op["op"], by, said)


def resolve(m: Map, op: Json, said: Said) -> Map:
    """The target is resolved; what it subsumes rests on it; a decision may be recorded."""
    target = op["target"]
    decision = op.get("decision")
    premises = op.get("premises", [])
    need_record(m, target)
    if target in op.get("subsumes", []):
        raise RefusedError("self_reference")
    if decision is None and target in [id_of(premise) for premise in premises]:
        raise RefusedError("self_reference")
    if m.records[target].standing not in GOOD:
        raise RefusedError("target_not_in_good_standing")
    if any(attacked == target for _, attacked in m.attacks):
        raise RefusedError("target_attacked")
    for subsumed in op.get("subsumes", []):
        need_record(m, subsumed)
    own = None if decision is None else decision["record"]
    if own is not None:
        need_new(m, own)
    pending = () if own is None else (own,)
    m, own_cited = cite_all(m, (decision or {}).get("premises", []), said, pending)
    m, cited = cite_all(m, premises, said, pending)
    for problem in op.get("answers", []):
        need_record_or_question(m, problem)
    need_authority_to_resolve(m, op, said)
    m = relabelled(m, target, "resolved", op["op"], None, said)
    for subsumed in op.get("subsumes", []):
        m = linked(m, subsumed, [target], "subsumption")
    if own is None:
        m = linked(m, target, cited, "premise")
    else:
        m = registered(m, own, "decision", [target, *cited, *own_cited], said)
    return answered(m, own or target, op.get("answers", []))


def question(m: Map, op: Json, said: Said) -> Map:
    """A new open problem."""
    need_new(m, op["question"])
    for subject in op.get("about", []):
        need_record_or_question(m, subject)
    return replace(m, questions=m.questions | {op["question"]})


def id_of(reference: str | Json) -> str:
    """The id a reference names, whether bare or inline."""
    if isinstance(reference, str):
        return reference
    named: str = reference["record"]
    return named


def need_new(m: Map, own: str, pending: Sequence[str] = ()) -> None:
    """Records and questions share one id space."""
    if own in m.records or own in m.questions or own in pending:
        raise RefusedError("duplicate_record")


def need_record(m: Map, cited: str) -> None:
    """A question is no record."""
    if cited not in m.records:
        raise RefusedError("unknown_reference")


def need_authority(m: Map, said: Said, act: str, cited: str) -> None:
    """The policy lets the role of the utterance do this to that record."""
    record = m.records[cited]
    if not may(said.policy, said.role, act, record.kind, record.role):
        raise RefusedError("not_authorised")


def need_authority_to_resolve(m: Map, op: Json, said: Said) -> None:
    """To decide, to resolve the target, and to let it and the subsumed rest on something else."""
    if op["mode"] == "authoritative" and not may_decide(said.policy, said.role):
        raise RefusedError("not_authorised")
    need_authority(m, said, "resolve", op["target"])
    if op.get("decision") is None and op.get("premises"):
        need_authority(m, said, "rebase", op["target"])
    for subsumed in op.get("subsumes", []):
        need_authority(m, said, "rebase", subsumed)


def need_record_or_question(m: Map, cited: str) -> None:
    """What `explains`, `about` and `answers` take."""
    if cited not in m.records and cited not in m.questions:
        raise RefusedError("unknown_reference")


def cite(
    m: Map, reference: str | Json, kind: str, said: Said, pending: Sequence[str]
) -> tuple[Map, str]:
    """Check one reference depth first; `pending` are ids whose introduction is not finished."""
    if isinstance(reference, str):
        need_record(m, reference)
        return m, reference
    own = id_of(reference)
    need_new(m, own, pending)
    m, premises = cite_all(m, reference.get("premises", []), said, (*pending, own))
    return registered(m, own, kind, premises, said), own


def cite_all(
    m: Map, references: Iterable[str | Json], said: Said, pending: Sequence[str]
) -> tuple[Map, list[str]]:
    """Check premises from left to right."""
    cited = []
    for reference in references:
        m, one = cite(m, reference, "premise", said, pending)
        cited.append(one)
    return m, cited


def registered(m: Map, own: str, kind: str, premises: Iterable[str], said: Said) -> Map:
    """The record exists, active; its speaker is committed to it; its hearers know of its id."""
    record = Record(kind=kind, speaker=said.speaker, turn=said.turn, role=said.role)
    m = replace(
        m,
        records={**m.records, own: record},
        commitments=m.commitments | {(said.speaker, own)},
    )
    return made_aware(linked(m, own, premises, "premise"), said.hearers, own)


def linked(m: Map, source: str, targets: Iterable[str], kind: str) -> Map:
    """Add support links; a record that is linked already keeps its first kind."""
    record = m.records[source]
    links = dict(record.links)
    for target in targets:
        links.setdefault(target, kind)
    return replace(m, records={**m.records, source: replace(record, links=tuple(links.items()))})


def relabelled(m: Map, target: str, standing: str, op: str, by: str | None, said: Said) -> Map:
    """Set the standing and note the change if there is one."""
    record = m.records[target]
    if record.standing == standing:
        return m
    change = Change(standing, said.turn, op, by, said.speaker)
    record = replace(record, standing=standing, changes=(*record.changes, change))
    return replace(m, records={**m.records, target: record})


def answered(m: Map, record: str, problems: Iterable[str]) -> Map:
    """The record answers the problems."""
    return replace(m, answers=m.answers | {(record, problem) for problem in problems})


def both(some: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """The agents in both groups, where `EVERYONE` alone is all of them."""
    if EVERYONE in some:
        return others
    return some if EVERYONE in others else some & others


def is_aware(m: Map, agent: str, proposition: str) -> bool:
    """An agent is aware by itself or with everyone; everyone only together."""
    return (agent, proposition) in m.awareness or (EVERYONE, proposition) in m.awareness


def made_aware(m: Map, agents: Iterable[str], proposition: str) -> Map:
    """The agents are aware of the proposition from here on."""
    return replace(m, awareness=m.awareness | {(agent, proposition) for agent in agents})
