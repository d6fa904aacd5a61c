"""What must be true of a scenario: the form of its `NAME.expected.json`.

A field that is left out (or null) is not checked; one that is given is checked as a whole, so a
record that should not be there is found too. Lists of ids are in ascending order.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.contract import Contract, Count
from schemas.derived import (
    Failure,
    Grade,
    NoteCode,
    Outcome,
    Severity,
    Standing,
    VerdictReason,
)
from schemas.ids import AgentId, RecordId, UtteranceId, VariableName

Ids = tuple[RecordId, ...]
LinkName = Literal["premise", "corroboration", "subsumption"]
KindName = Literal["observation", "hypothesis", "evidence", "premise", "decision"]


class ExpectedAffected(Contract):
    """The answer to a retraction query (Definition 2.3): one step, closure, closure within S_t."""

    direct: Ids
    transitive: Ids
    in_good_standing: Ids


class ExpectedWorlds(Contract):
    """The worlds that are left, each given by which of `variables` are true there."""

    variables: tuple[VariableName, ...]
    true_in: tuple[tuple[VariableName, ...], ...]


class ExpectedState(Contract):
    """The map after a turn; turn 0 is what the setup left.

    `standing`, `kinds` and `links` speak of the records they name; `good_standing`, `grounded`
    (what `verify` accepts), `attacks`, `open_problems` and `disputed` speak of the whole map.
    `aware` maps a proposition to the agents who have it in mind, `holds` a formula to whether it is
    true at every world of the law.
    """

    standing: dict[RecordId, Standing] | None = None
    kinds: dict[RecordId, KindName] | None = None
    links: dict[RecordId, dict[RecordId, LinkName]] | None = None
    attacks: tuple[tuple[RecordId, RecordId], ...] | None = None
    good_standing: Ids | None = None
    grounded: Ids | None = None
    open_problems: Ids | None = None
    disputed: Ids | None = None
    commitments: dict[AgentId, Ids] | None = None
    aware: dict[VariableName, tuple[AgentId, ...]] | None = None
    worlds: ExpectedWorlds | None = None
    holds: dict[str, bool] | None = None
    affected: dict[RecordId, ExpectedAffected] | None = None


class ExpectedImpact(Contract):
    """A retraction impact without its envelope."""

    withdrawn: RecordId
    standing: Standing
    cause: str
    by: RecordId
    direct: Ids = ()
    transitive: Ids = ()
    in_good_standing: Ids = ()
    newly_ungrounded: Ids = ()
    decisions: Ids = ()


class ExpectedAlert(Contract):
    """An alert about a record of the map."""

    record: RecordId
    severity: Severity
    reason: VerdictReason


class ExpectedEvents(Contract):
    """What a turn emits. A turn that is not mentioned emits none of these."""

    ungrounded: Ids = ()
    notes: tuple[NoteCode, ...] = ()
    impacts: tuple[ExpectedImpact, ...] = ()
    alerts: tuple[ExpectedAlert, ...] = ()


class ExpectedVerdict(Contract):
    """The answer to one claim of a candidate, in the order of its claims."""

    outcome: Outcome
    grade: Grade | None
    reason: VerdictReason | None = None
    support: Ids = ()
    failures: tuple[Failure, ...] = ()
    disputed: Ids = ()


class ExpectedRetractions(Contract):
    """Retraction queries put at the end, with the answers within a set of records.

    `closure` is the gold; `one_step` is what the one-step query says.
    """

    over: Ids
    closure: dict[RecordId, Ids]
    one_step: dict[RecordId, Ids]


class Expected(Contract):
    """Everything that is expected of one scenario; the keys of `after` and `events` are turns."""

    turns: Count
    after: dict[str, ExpectedState]
    events: dict[str, ExpectedEvents] = Field(default={})
    verdicts: dict[UtteranceId, tuple[ExpectedVerdict, ...]] = Field(default={})
    retractions: ExpectedRetractions | None = None
