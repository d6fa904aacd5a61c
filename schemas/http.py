"""What goes over HTTP: a check and its answer, what a worker says of itself, and problems.

Ids, claims and verdicts are those of the topics. `pending` is an outcome that exists here only: it
never stands in a log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Annotated, ClassVar, TypeVar

from pydantic import BeforeValidator, Field, ValidationError

from schemas.contract import REFERENCES_MAX, Contract, Count, Reason, Text, Timestamp, Turn
from schemas.derived import Outcome, UngroundedAlert, VerdictEvent, VerdictReason
from schemas.evidence import AtomText, MemoryClass, QueryClass, RenderFormat, ValidTime
from schemas.ids import AgentId, ConversationId, RecordId, RoleName, TenantId, UtteranceId
from schemas.utterance import CandidateClaim
from schemas.wire import WireError, problem_of

WAIT_MS_DEFAULT = 2_000
WAIT_MS_MAX = 30_000
"""Who would wait longer asks again: others cut a connection that says nothing for long."""
BUDGET_TOKENS_MAX = 1_000_000
ALERTS_MAX = 1_000
PLACE_MAX = 999_999_999
PLACE_PATTERN = r"^[0-9]{1,15}\.[0-9]{1,9}$"
PROBLEM_TYPE = "application/problem+json"

WaitMs = Annotated[int, Field(ge=0, le=WAIT_MS_MAX)]


class CheckRequest(Contract):
    """A draft continuation to check.

    `after` is an utterance that must be folded first. `candidate_id` is the utterance id of the
    draft: asked again with the same content it gets the same answer. With `record` false nothing is
    written, and the answer is about the state as it is now. `speaker`, `role`, `text` and `at` are
    those of the utterance; without `at` it is said when it is received.
    """

    claims: Annotated[tuple[CandidateClaim, ...], Field(max_length=REFERENCES_MAX)] | None = None
    text: Text = ""
    after: UtteranceId | None = None
    wait_ms: WaitMs = WAIT_MS_DEFAULT
    candidate_id: UtteranceId | None = None
    record: bool = True
    speaker: AgentId = "assistant"
    role: RoleName = "assistant"
    at: Timestamp | None = None


def _number(written: object) -> object:
    """A number as it stands in a query; anything else is left for the check that follows."""
    if isinstance(written, str) and _DIGITS.fullmatch(written):
        return int(written)
    return written


def _flag(written: object) -> object:
    return {"true": True, "false": False}.get(written, written) if type(written) is str else written


def _member(choices: type[StrEnum]) -> Callable[[object], object]:
    """What a query writes as a word, as the member it names; else as it is."""
    words = {member.value: member for member in choices}
    return lambda written: words.get(written, written) if type(written) is str else written


_DIGITS = re.compile(r"[0-9]{1,16}")
_FromQuery = BeforeValidator(_number)


class ViewQuery(Contract):
    """What every view is asked with: as of which turn, and what must be folded first."""

    turn: Annotated[Turn, _FromQuery] | None = None
    after: UtteranceId | None = None
    wait_ms: Annotated[WaitMs, _FromQuery] = WAIT_MS_DEFAULT


class AffectedQuery(ViewQuery):
    """Which records are withdrawn in thought; the parameter may stand several times."""

    record: Annotated[tuple[RecordId, ...], Field(min_length=1, max_length=REFERENCES_MAX)]


class ContextView(StrEnum):
    """What of the state is put into words."""

    FULL = "full"
    """Everything that stands, with marks where it is not grounded or disputed."""
    ACTIVE = "active"
    """What may be relied on, and what may not any more and why."""


def _view(written: object) -> object:
    return next((view for view in ContextView if view == written), written)


class ContextQuery(ViewQuery):
    """What is put into words, and how much of it.

    `budget` is in tokens, counted from above; each `record` comes before all others; `withdrawn`
    includes the claims that were given up.
    """

    view: Annotated[ContextView, BeforeValidator(_view)] = ContextView.FULL
    budget: Annotated[int, Field(ge=1, le=BUDGET_TOKENS_MAX), _FromQuery] | None = None
    record: Annotated[tuple[RecordId, ...], Field(max_length=REFERENCES_MAX)] = ()
    withdrawn: Annotated[bool, BeforeValidator(_flag)] = False


class MemoryQuery(ViewQuery):
    """Which key is asked about, of which memory class; entity and attribute go together.

    Without them the memory is rendered, in a format and within a budget of tokens. Without a
    class, the tenant's answers.
    """

    entity: AtomText | None = None
    attribute: AtomText | None = None
    facet: AtomText | None = None
    query: Annotated[QueryClass, BeforeValidator(_member(QueryClass))] = QueryClass.SNAPSHOT
    at: ValidTime | None = None
    memory: Annotated[MemoryClass, BeforeValidator(_member(MemoryClass))] | None = None
    format: Annotated[RenderFormat, BeforeValidator(_member(RenderFormat))] = RenderFormat.COMPACT
    budget: Annotated[Annotated[int, Field(ge=1, le=1_000_000)], _FromQuery] = 4_000
    superseded: Annotated[bool, BeforeValidator(_flag)] = False


Since = Annotated[str, Field(pattern=PLACE_PATTERN)]
"""A place in a log: the sequence of an event, and the order among what came of it."""


class AlertsQuery(Contract):
    """The alerts behind a place, and what must be folded first.

    `since` is 0.0 for all of them, or what an alert or an answer had as its `since`.
    """

    since: Since = "0.0"
    limit: Annotated[Annotated[int, Field(ge=1, le=ALERTS_MAX)], _FromQuery] = 100
    after: UtteranceId | None = None
    wait_ms: Annotated[WaitMs, _FromQuery] = WAIT_MS_DEFAULT


class PlacedAlert(Contract):
    """An alert, as on the topic, and its place."""

    since: Since
    alert: UngroundedAlert


class AlertsAnswer(Contract):
    """Alerts in the order of the log; the next ones are behind `since`, if not `is_last` at once.

    Not `is_whole`: the worker began from a checkpoint and has not all that were asked for. Then
    there are none here, and it has all that are behind `since`.
    """

    tenant_id: TenantId
    conversation_id: ConversationId
    alerts: Annotated[tuple[PlacedAlert, ...], Field(max_length=ALERTS_MAX)]
    since: Since
    is_last: bool
    is_whole: bool


class NoQuery(Contract):
    """Nothing: a parameter would have no effect."""


class ErasedAnswer(Contract):
    """The conversation is erased, and its id closed for ever.

    `in_the_clear`: how many of its events stand in the log as they were said, from before there was
    a key file. Nothing erases those.
    """

    tenant_id: TenantId
    conversation_id: ConversationId
    in_the_clear: Count


class CheckAnswer(Contract):
    """The verdicts on a draft, as on the topic, and the worst of their outcomes.

    `recorded` says that the draft is in the log. A `pending` answer has no verdicts; the same
    question, with the `candidate_id` that stands here, will have them later.
    """

    tenant_id: TenantId
    conversation_id: ConversationId
    candidate_id: UtteranceId
    outcome: Outcome
    reason: VerdictReason | None
    recorded: bool
    verdicts: tuple[VerdictEvent, ...]


class ProblemDetails(Contract):
    """What went wrong (RFC 9457); `place` is the field or parameter at fault, if one is."""

    MEDIA_TYPE: ClassVar[str] = PROBLEM_TYPE

    type: Annotated[str, Field(max_length=128)]
    title: Annotated[str, Field(max_length=128)]
    status: Annotated[int, Field(ge=400, le=599)]
    detail: Reason
    place: Reason | None = None


class Liveness(Contract):
    """Whether a worker's loop and its consumer run; nobody else is asked."""

    alive: bool
    loop_lag_ms: Count
    consumer_runs: bool


class Readiness(Contract):
    """Whether a worker does its work, and what is amiss if it does not.

    `assigned`: the group gave it its partitions, perhaps none. `recovered`: they are folded up to
    their ends at assignment. `endpoint`: the model answered last time, or none is configured.
    `keys`: nothing waits for a key that is away.
    """

    ready: bool
    assigned: bool
    recovered: bool
    store_open: bool
    endpoint: bool
    keys: bool = True


Query = TypeVar("Query", bound=Contract)


def decode_query(model: type[Query], parameters: Iterable[tuple[str, str]]) -> Query:
    """Read the parameters of a query. Raises WireError with the name of the first bad one."""
    given: dict[str, object] = {}
    for name, value in parameters:
        if name == "record":
            before = given.get(name, ())
            assert isinstance(before, tuple)
            given[name] = (*before, value)
        elif name in given:
            raise WireError(name, "stands twice")
        else:
            given[name] = value
    try:
        return model.model_validate(given)
    except ValidationError as invalid:
        error = invalid.errors(include_url=False, include_input=False, include_context=False)[0]
        raise WireError(str(error["loc"][0]), problem_of(error)) from invalid


_SEVERITY = (
    Outcome.PENDING,
    Outcome.UNGROUNDED,
    Outcome.ABSTAIN,
    Outcome.UNVERIFIED,
    Outcome.GROUNDED,
    Outcome.NO_CLAIMS,
)


def overall(verdicts: tuple[VerdictEvent, ...]) -> Outcome:
    """The outcome of a draft: that of its worst claim."""
    return min((verdict.outcome for verdict in verdicts), key=_SEVERITY.index)
