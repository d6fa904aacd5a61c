"""The naive engine: utterances in, derived events out, everything worked out from scratch.

Events are plain dicts `{"type": ..., "data": {...}}` with the fields of the contract, but without
texts, messages, notes, ids and digests; a rejection is its index and code, `failed` a flag.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from schemas.operations import OPERATION_ORDER
from tests.oracles import naive_policy as policies
from tests.oracles import naive_queries as ask
from tests.oracles.naive_map import EVERYONE, GOOD, Json, Map, RefusedError, Said, apply, made_aware


@dataclass
class NaiveConversation:
    """One conversation: the map, its counters, and what must be remembered to speak once."""

    map: Map = field(default_factory=Map)
    turn: int = 0
    sequence: int = 0
    failed_turns: list[int] = field(default_factory=list)
    utterances: set[str] = field(default_factory=set)
    alerted: set[str] = field(default_factory=set)
    policy: Json = field(default_factory=lambda: policies.DEFAULT)

    def say(self, utterance: Json) -> list[Json]:
        """The derived events of one utterance; none for an id that was seen before."""
        if utterance["utterance_id"] in self.utterances:
            return []
        kind = utterance.get("kind", "statement")
        if kind == "setup" and self.sequence > 0:
            return []
        self.utterances.add(utterance["utterance_id"])
        self.sequence += 1
        if kind == "setup":
            self._set_up(utterance)
            return []
        if kind == "candidate":
            return self._stamped(self._check(utterance))
        self.turn += 1
        return self._stamped(self._state(utterance))

    def _stamped(self, events: Iterable[Json]) -> list[Json]:
        place = {"turn": self.turn, "sequence": self.sequence}
        return [{"type": e["type"], "data": {**e["data"], **place}} for e in events]

    def _set_up(self, utterance: Json) -> None:
        body = utterance.get("setup") or utterance
        self.policy = body.get("policy") or self.policy
        for variable in body.get("variables") or []:
            self.map = made_aware(self.map, hearers_of(utterance), variable)

    def _state(self, utterance: Json) -> list[Json]:
        if utterance.get("operations") is None:
            self.failed_turns.append(self.turn)
            return [turn_event(utterance, [], [], [], failed=True)]
        before = self.map
        applied, rejections, impacts = self._apply_all(utterance)
        after = self.map
        ungrounded = [
            name
            for name in sorted(after.records)
            if not ask.grounded(after, name)
            and (name not in before.records or ask.grounded(before, name))
        ]
        return [
            turn_event(utterance, applied, rejections, ungrounded, failed=False),
            *impacts,
            *self._decision_verdicts(before),
            *self._decision_alerts(),
        ]

    def _apply_all(self, utterance: Json) -> tuple[list[int], list[Json], list[Json]]:
        """Apply the operations kind by kind, in the order given inside each kind."""
        operations = utterance["operations"]
        applied, rejections, impacts = [], [], []
        for kind in OPERATION_ORDER:
            for index, op in enumerate(operations):
                if op["op"] != kind:
                    continue
                speaker = op.get("speaker") or utterance["speaker"]
                role = utterance.get("role", "user")
                said = Said(speaker, self.turn, hearers_of(utterance), role, self.policy)
                before = self.map
                try:
                    self.map = apply(before, op, said)
                except RefusedError as refused:
                    rejections.append({"index": index, "code": refused.code})
                    continue
                applied.append(index)
                impacts.extend(impacts_of(before, self.map))
        return sorted(applied), sorted(rejections, key=lambda r: r["index"]), impacts

    def _decision_verdicts(self, before: Map) -> list[Json]:
        after = self.map
        verdicts = []
        for name in sorted(after.records):
            if not is_decision(after, name):
                continue
            existed = name in before.records
            fell = existed and ask.worse(before, after, name)
            became = not existed or not is_decision(before, name)
            if fell or (became and not ask.grounded(after, name)):
                verdicts.append(self._verdict(None, name, (name,)))
        return verdicts

    def _decision_alerts(self) -> list[Json]:
        alerts = []
        for name in sorted(self.map.records):
            if name in self.alerted or not is_decision(self.map, name):
                continue
            if not ask.grounded(self.map, name):
                self.alerted.add(name)
                grade = ask.grade(self.map, [name])
                alerts.append(alert(name, None, grade, "withdrawn_support"))
        return alerts

    def _check(self, utterance: Json) -> list[Json]:
        """Verdicts by claim, then alerts for those that are ungrounded."""
        claims = utterance.get("claims")
        if not claims:
            candidate = candidate_ref(utterance, None, ())
            outcome = "unverified" if claims is None else "no_claims"
            reason = "no_claims_given" if claims is None else None
            return [self._plain_verdict(candidate, None, outcome, None, reason)]
        verdicts = []
        for index, claim in enumerate(claims):
            single = [claim["record"]] if claim.get("record") is not None else []
            records = tuple(dict.fromkeys(claim.get("records") or single))
            candidate = candidate_ref(utterance, index, records)
            verdicts.append(self._verdict(candidate, None, records))
        alerts = [
            alert(None, v["data"]["candidate"], v["data"]["grade"], v["data"]["reason"])
            for v in verdicts
            if v["data"]["outcome"] == "ungrounded"
        ]
        return [*verdicts, *alerts]

    def _verdict(self, candidate: Json | None, record: str | None, names: tuple[str, ...]) -> Json:
        """A claim is grounded iff all of its records are known and grounded."""
        if not names or not set(names) <= set(self.map.records):
            known = tuple(name for name in names if name in self.map.records)
            verdict = self._plain_verdict(
                candidate, record, "ungrounded", "ungrounded", "no_record"
            )
            verdict["data"]["failures"] = failures(self.map, known)
            return verdict
        if all(ask.grounded(self.map, name) for name in names):
            verdict = self._plain_verdict(candidate, record, "grounded", "grounded", None)
            verdict["data"]["support"] = sorted(ask.closure(self.map, names))
            return verdict
        grade = ask.grade(self.map, names)
        verdict = self._plain_verdict(candidate, record, "ungrounded", grade, "withdrawn_support")
        verdict["data"]["failures"] = failures(self.map, names)
        return verdict

    def _plain_verdict(
        self,
        candidate: Json | None,
        record: str | None,
        outcome: str,
        grade: str | None,
        reason: str | None,
    ) -> Json:
        missing = list(self.failed_turns)
        data: Json = {
            "candidate": candidate,
            "record": record,
            "outcome": outcome,
            "grade": grade,
            "support": [],
            "failures": [],
            "support_complete": True,
            "failures_complete": True,
            "reason": reason,
            "coverage": {
                "complete": not missing,
                "missing_turns": missing[-100:],
                "missing_count": len(missing),
            },
        }
        return {"type": "standfast.verdict.v1", "data": data}


class NaiveEngine:
    """All conversations, each by its tenant and id."""

    def __init__(self) -> None:
        self.conversations: dict[tuple[str, str], NaiveConversation] = {}

    def say(self, utterance: Json) -> list[Json]:
        """The derived events of one utterance, with the conversation they belong to."""
        key = (utterance.get("tenant_id", "default"), utterance["conversation_id"])
        place = {"tenant_id": key[0], "conversation_id": key[1]}
        events = self.conversations.setdefault(key, NaiveConversation()).say(utterance)
        return [{"type": e["type"], "data": {**e["data"], **place}} for e in events]


def hearers_of(utterance: Json) -> frozenset[str]:
    """The audience; none given is everyone. Who speaks hears it too."""
    if not utterance.get("audience"):
        return frozenset({EVERYONE})
    speakers = {o.get("speaker") or utterance["speaker"] for o in utterance.get("operations") or ()}
    return frozenset({*utterance["audience"], utterance["speaker"], *speakers})


def is_decision(m: Map, name: str) -> bool:
    """A record that somebody decided: by its kind, or because it is resolved now."""
    return m.records[name].kind == "decision" or m.records[name].standing == "resolved"


def impacts_of(before: Map, after: Map) -> list[Json]:
    """One impact for each record that left good standing between two maps."""
    left = sorted(ask.good_standing(before) - ask.good_standing(after))
    return [impact(before, after, name) for name in left]


def impact(before: Map, after: Map, withdrawn: str) -> Json:
    """What rested on the withdrawn record, seen right after the operation."""
    cause = after.records[withdrawn].changes[-1]
    transitive = ask.affected_closure(after, [withdrawn])
    standing = transitive & ask.good_standing(after)
    data = {
        "withdrawn": withdrawn,
        "standing": after.records[withdrawn].standing,
        "cause": cause.op,
        "by": cause.by,
        "direct": sorted(ask.affected(after, [withdrawn])),
        "transitive": sorted(transitive),
        "in_good_standing": sorted(standing),
        "complete": True,
        "newly_ungrounded": sorted(
            name
            for name in ask.good_standing(after) & set(before.records)
            if ask.grounded(before, name) and not ask.grounded(after, name)
        ),
        "decisions": sorted(name for name in standing if is_decision(after, name)),
    }
    return {"type": "standfast.retraction_impact.v1", "data": data}


def failures(m: Map, names: Iterable[str]) -> list[Json]:
    """Every reachable record outside good standing: how it fell, and the way there."""
    paths = ask.shortest_paths(m, names)
    return [failure(m, name, paths[name]) for name in sorted(set(paths) - ask.good_standing(m))]


def failure(m: Map, name: str, path: ask.Path) -> Json:
    """A failing record with the change by which it first left good standing."""
    record = m.records[name]
    first = next(change for change in record.changes if change.standing not in GOOD)
    return {
        "record": name,
        "standing": record.standing,
        "since_turn": first.turn,
        "cause": {"op": first.op, "by": first.by, "speaker": first.speaker},
        "path": list(path),
        "path_omitted": 0,
    }


def candidate_ref(utterance: Json, index: int | None, records: tuple[str, ...]) -> Json:
    """Which claim of which candidate a verdict is about."""
    return {
        "utterance_id": utterance["utterance_id"],
        "claim_index": index,
        "records": list(records),
    }


def turn_event(
    utterance: Json,
    applied: list[int],
    rejections: list[Json],
    ungrounded: list[str],
    *,
    failed: bool,
) -> Json:
    """What a statement did."""
    data = {
        "utterance_id": utterance["utterance_id"],
        "applied": applied,
        "rejections": rejections,
        "ungrounded": ungrounded,
        "failed": failed,
    }
    return {"type": "standfast.turn.v1", "data": data}


def alert(record: str | None, candidate: Json | None, grade: str, reason: str) -> Json:
    """Losing corroboration alone is the quieter alert."""
    data = {
        "record": record,
        "candidate": candidate,
        "severity": "warning" if grade == "corroboration_lost" else "critical",
        "reason": reason,
    }
    return {"type": "standfast.ungrounded_alert.v1", "data": data}
