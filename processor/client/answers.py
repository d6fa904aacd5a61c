"""What a gate answers, as frozen values, and how its JSON is read.

Fields that are not known are passed over, so a client reads the answers of later workers; what it
needs must be there and of its kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, TypeVar, final

from .errors import UnreadableError

Value = TypeVar("Value")


class Outcome(StrEnum):
    """The outcome of a draft: that of its worst claim, as the gate says it.

    UNAVAILABLE is the client's own: nobody answered in time.
    """

    GROUNDED = "grounded"
    UNGROUNDED = "ungrounded"
    ABSTAIN = "abstain"
    PENDING = "pending"
    UNVERIFIED = "unverified"
    NO_CLAIMS = "no_claims"
    UNAVAILABLE = "unavailable"


UNDECIDED = frozenset({Outcome.PENDING, Outcome.UNAVAILABLE})
"""There is no verdict, so the guard's `fail` decides."""


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """A record that a claim rests on and that no longer stands; `path` leads to it."""

    record: str
    standing: str
    since_turn: int
    op: str
    by: str | None
    speaker: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        by = f"{self.op} by {self.by}" if self.by else self.op
        reached = f", reached through {' -> '.join(self.path)}" if len(self.path) > 1 else ""
        return (
            f"{self.record} is {self.standing} since turn {self.since_turn} "
            f"({by}, {self.speaker}){reached}"
        )


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer about one claim; `records` are those that the claim names."""

    outcome: Outcome
    text: str
    records: tuple[str, ...]
    reason: str | None
    grade: str | None
    turn: int
    failures: tuple[Failure, ...]
    disputed: tuple[str, ...]
    is_complete: bool
    """Whether every statement so far was interpreted."""

    def __str__(self) -> str:
        about = ", ".join(filter(None, [json.dumps(self.text), *self.records]))
        why = [str(failure) for failure in self.failures]
        if self.disputed:
            why.append(f"in dispute: {', '.join(self.disputed)}")
        if not why and self.reason is not None:
            why.append(self.reason.replace("_", " "))
        return f"{about}: {self.outcome}" + (f"; {'; '.join(why)}" if why else "")


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a check; `allowed` is what the guard's settings make of it.

    `recorded` says that the draft is in the log under `candidate_id`. `problem` says why there is
    no verdict, if the gate could not be asked.
    """

    outcome: Outcome
    allowed: bool
    candidate_id: str | None = None
    recorded: bool = False
    reason: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    problem: str | None = None

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What the claims ran into, claim by claim."""
        return tuple(failure for verdict in self.verdicts for failure in verdict.failures)

    @property
    def explanation(self) -> str:
        """Why, one line for each claim that is not simply grounded; empty if there is none."""
        if self.problem is not None:
            return f"{self.outcome}: {self.problem}"
        if not self.verdicts:
            return "" if self.reason is None else f"{self.outcome}: {self.reason}"
        return "\n".join(
            str(verdict) for verdict in self.verdicts if verdict.outcome is not Outcome.GROUNDED
        )

    def as_dict(self) -> dict[str, Any]:
        """The same in JSON values, with the explanation, for states and logs."""
        told: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return {**told, "explanation": self.explanation}


@final
@dataclass(frozen=True, slots=True)
class Checked:
    """What the gate says of a draft."""

    outcome: Outcome
    candidate_id: str
    recorded: bool
    reason: str | None
    verdicts: tuple[Verdict, ...]


@final
@dataclass(frozen=True, slots=True)
class Alert:
    """A decision or a claim that lost its ground; a stream that starts at `since` begins behind it.

    `records` are the decision, or what the claim names; `claim` is the claim's text.
    """

    since: str
    turn: int
    severity: str
    reason: str
    message: str
    records: tuple[str, ...]
    candidate_id: str | None
    claim: str | None


@final
@dataclass(frozen=True, slots=True)
class AlertPage:
    """Some alerts; `since` is where the next ones begin, `is_last` that there are none yet.

    Not `is_whole`: the worker does not have all from before `since`, and gives none of them.
    """

    alerts: tuple[Alert, ...]
    since: str
    is_last: bool
    is_whole: bool


def read_checked(body: bytes) -> Checked:
    """The answer to a check. Raises UnreadableError."""
    fields = _object(body)
    return Checked(
        outcome=_outcome(fields, "outcome"),
        candidate_id=_field(fields, "candidate_id", str),
        recorded=_field(fields, "recorded", bool),
        reason=_optional(fields, "reason", str),
        verdicts=_each(fields, "verdicts", _verdict),
    )


def read_alerts(body: bytes) -> AlertPage:
    """A page of alerts. Raises UnreadableError."""
    fields = _object(body)
    return AlertPage(
        alerts=_each(fields, "alerts", _alert),
        since=_field(fields, "since", str),
        is_last=_field(fields, "is_last", bool),
        is_whole=_field(fields, "is_whole", bool),
    )


def read_problem(status: int, body: bytes) -> tuple[str, str, str | None]:
    """Type, detail and place of problem details; of anything else the status has to do."""
    try:
        fields = _object(body)
        return (
            _field(fields, "type", str)[:128],
            _field(fields, "detail", str)[:4_096],
            _optional(fields, "place", str),
        )
    except UnreadableError:
        return "about:blank", f"status {status} without problem details", None


def _verdict(fields: Mapping[str, Any]) -> Verdict:
    candidate = _field(fields, "candidate", dict)
    return Verdict(
        outcome=_outcome(fields, "outcome"),
        text=_field(candidate, "text", str),
        records=_strings(candidate, "records"),
        reason=_optional(fields, "reason", str),
        grade=_optional(fields, "grade", str),
        turn=_field(fields, "turn", int),
        failures=_each(fields, "failures", _failure),
        disputed=_strings(fields, "disputed"),
        is_complete=_field(_field(fields, "coverage", dict), "complete", bool),
    )


def _failure(fields: Mapping[str, Any]) -> Failure:
    cause = _field(fields, "cause", dict)
    return Failure(
        record=_field(fields, "record", str),
        standing=_field(fields, "standing", str),
        since_turn=_field(fields, "since_turn", int),
        op=_field(cause, "op", str),
        by=_optional(cause, "by", str),
        speaker=_field(cause, "speaker", str),
        path=_strings(fields, "path"),
    )


def _alert(fields: Mapping[str, Any]) -> Alert:
    alert = _field(fields, "alert", dict)
    candidate = _optional(alert, "candidate", dict)
    record = _optional(alert, "record", str)
    decision = () if record is None else (record,)
    return Alert(
        since=_field(fields, "since", str),
        turn=_field(alert, "turn", int),
        severity=_field(alert, "severity", str),
        reason=_field(alert, "reason", str),
        message=_field(alert, "message", str),
        records=decision if candidate is None else _strings(candidate, "records"),
        candidate_id=None if candidate is None else _field(candidate, "utterance_id", str),
        claim=None if candidate is None else _field(candidate, "text", str),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnreadableError("the answer is no JSON") from error
    if not isinstance(fields, dict):
        raise UnreadableError("the answer is no object")
    return fields


def _field(fields: Mapping[str, Any], name: str, kind: type[Value]) -> Value:
    value = fields.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UnreadableError(f"{name}: not the {kind.__name__} that it must be")
    return value


def _optional(fields: Mapping[str, Any], name: str, kind: type[Value]) -> Value | None:
    return None if fields.get(name) is None else _field(fields, name, kind)


def _outcome(fields: Mapping[str, Any], name: str) -> Outcome:
    try:
        return Outcome(_field(fields, name, str))
    except ValueError as unknown:
        raise UnreadableError(f"{name}: not an outcome that this client knows") from unknown


def _strings(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    listed = _field(fields, name, list)
    if not all(isinstance(each, str) for each in listed):
        raise UnreadableError(f"{name}: not a list of names")
    return tuple(listed)


def _each(
    fields: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any]], Value]
) -> tuple[Value, ...]:
    values = []
    for place, each in enumerate(_field(fields, name, list)):
        try:
            if not isinstance(each, dict):
                raise UnreadableError("not an object")
            values.append(read(each))
        except UnreadableError as wrong:
            raise UnreadableError(f"{name}[{place}]: {wrong}") from wrong
    return tuple(values)
