"""Hypothesis strategies for the contracts: any well-formed event, however senseless its content.

Streams that make sense to the engine are generated in `tests/strategies_streams.py`.
"""

from __future__ import annotations

import string
from datetime import datetime, timedelta, timezone

from hypothesis import strategies as st

from schemas import derived, evidence, formula, log, operations, policy, utterance
from schemas.contract import Contract
from schemas.utterance import UtteranceKind

ALPHANUMERIC = string.ascii_letters + string.digits


def _ids(rest: str) -> st.SearchStrategy[str]:
    """Ids that start with a letter or digit; short, so that some are met again."""
    return st.builds(
        str.__add__, st.sampled_from("abhoxZ09"), st.text(ALPHANUMERIC + rest, max_size=4)
    )


TENANT_IDS = st.text(ALPHANUMERIC + "-", min_size=1, max_size=8)
NAMES = _ids("._:@-")
RECORD_IDS = _ids("._:@'/-")
TEXTS = st.text(max_size=24)
CLAIMS = st.text(min_size=1, max_size=24)
COUNTS = st.integers(0, 2**53)
SEQUENCES = st.integers(1, 2**53)
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
MOMENTS = st.datetimes(
    min_value=datetime(2, 1, 1),
    max_value=datetime(9_998, 12, 31),
    timezones=st.integers(-23 * 60, 23 * 60).map(
        lambda minutes: timezone(timedelta(minutes=minutes))
    ),
)
"""Moments in every zone; the contracts keep them in UTC."""


def _tuples(
    items: st.SearchStrategy[object], min_size: int = 0, max_size: int = 3
) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(items, min_size=min_size, max_size=max_size).map(tuple)


def _some(model: type[Contract], /, **fields: st.SearchStrategy[object]) -> st.SearchStrategy:
    """A model in which each field with a default is sometimes left to it."""

    def build(draw: st.DrawFn) -> Contract:
        return model(
            **{
                name: draw(value)
                for name, value in fields.items()
                if model.model_fields[name].is_required() or draw(st.booleans())
            }
        )

    build.__name__ = model.__name__  # what a failing test prints, instead of every part
    return st.composite(build)()


VALID_TIMES = st.one_of(
    st.dates().map(lambda day: day.isoformat()),
    st.dates().map(lambda day: day.isoformat()[:7]),
    st.dates().map(lambda day: day.isoformat()[:4]),
    MOMENTS.map(lambda moment: f"{moment:%Y-%m-%dT%H:%M}Z".zfill(17)),
)
ATOMS = _some(
    evidence.Atom,
    entity=CLAIMS,
    attribute=CLAIMS,
    value=CLAIMS,
    polarity=st.booleans(),
    valid_from=st.none() | VALID_TIMES,
    valid_to=st.none() | VALID_TIMES,
    relation=st.none() | st.sampled_from(evidence.Relation),
    of=st.none() | _tuples(RECORD_IDS),
)


def _larger_formulas(smaller: st.SearchStrategy) -> st.SearchStrategy:
    several = _tuples(smaller, min_size=2)
    return st.one_of(
        _some(formula.NotNode, node=st.just("not"), formula=smaller),
        _some(formula.AndNode, node=st.just("and"), parts=several),
        _some(formula.OrNode, node=st.just("or"), parts=several),
        _some(formula.ImpliesNode, node=st.just("implies"), antecedent=smaller, consequent=smaller),
        _some(formula.IffNode, node=st.just("iff"), left=smaller, right=smaller),
        _some(formula.KnowsNode, node=st.just("knows"), agent=NAMES, formula=smaller),
        _some(formula.BelievesNode, node=st.just("believes"), agent=NAMES, formula=smaller),
        _some(
            formula.CommonNode,
            node=st.just("common"),
            agents=_tuples(NAMES, min_size=1),
            formula=smaller,
        ),
        _some(formula.AwareNode, node=st.just("aware"), agent=NAMES, formula=smaller),
        _some(formula.ExplicitNode, node=st.just("explicit"), agent=NAMES, formula=smaller),
    )


FORMULAS = st.recursive(
    _some(formula.AtomNode, node=st.just("atom"), name=RECORD_IDS)
    | _some(formula.ConstantNode, node=st.just("constant"), value=st.booleans()),
    _larger_formulas,
    max_leaves=6,
)
FORMULA_INPUTS = st.none() | CLAIMS | FORMULAS


def _inline_records(premises: st.SearchStrategy) -> st.SearchStrategy:
    return _some(
        operations.InlineRecord,
        record=RECORD_IDS,
        claim=CLAIMS,
        premises=_tuples(premises, max_size=2),
        formula=FORMULA_INPUTS,
        atoms=_tuples(ATOMS, max_size=1),
    )


INLINE_RECORDS = _inline_records(RECORD_IDS | _inline_records(RECORD_IDS))
REFERENCES = RECORD_IDS | INLINE_RECORDS
SPEAKERS = st.none() | NAMES

OBSERVES = _some(
    operations.Observe,
    op=st.just("observe"),
    record=RECORD_IDS,
    claim=CLAIMS,
    premises=_tuples(REFERENCES),
    formula=FORMULA_INPUTS,
    atoms=_tuples(ATOMS),
    speaker=SPEAKERS,
)
HYPOTHESIZES = _some(
    operations.Hypothesize,
    op=st.just("hypothesize"),
    record=RECORD_IDS,
    claim=CLAIMS,
    premises=_tuples(REFERENCES),
    explains=_tuples(RECORD_IDS),
    formula=FORMULA_INPUTS,
    speaker=SPEAKERS,
)
SUPPORTS = _some(
    operations.Support,
    op=st.just("support"),
    target=RECORD_IDS,
    evidence=REFERENCES,
    specific=st.booleans(),
    speaker=SPEAKERS,
)
UNDERMINES = _some(
    operations.Undermine,
    op=st.just("undermine"),
    target=RECORD_IDS,
    evidence=REFERENCES,
    contrast=st.booleans(),
    speaker=SPEAKERS,
)
REVISES = _some(
    operations.Revise,
    op=st.just("revise"),
    target=RECORD_IDS,
    by=REFERENCES,
    negates=st.booleans(),
    speaker=SPEAKERS,
)
_NEW_PROPOSITIONS = _some(
    operations.ExpandAwareness,
    op=st.just("expand_awareness"),
    proposition=RECORD_IDS,
    agents=st.none() | _tuples(NAMES, min_size=1),
    record=st.none() | RECORD_IDS,
    reclassifies=st.none() | RECORD_IDS,
    speaker=SPEAKERS,
)
EXPANDS_AWARENESS = st.builds(
    lambda expands, claim: (
        expands if expands.record is None else expands.model_copy(update={"claim": claim})
    ),
    _NEW_PROPOSITIONS,
    st.none() | CLAIMS,
)
RESOLVES = _some(
    operations.Resolve,
    op=st.just("resolve"),
    target=RECORD_IDS,
    mode=st.sampled_from(["consensual", "authoritative"]),
    subsumes=_tuples(RECORD_IDS),
    premises=_tuples(REFERENCES),
    answers=_tuples(RECORD_IDS),
    decision=st.none() | INLINE_RECORDS,
    dissent=_tuples(_some(operations.Dissent, agent=NAMES, reason=TEXTS)),
    speaker=SPEAKERS,
)
QUESTIONS = _some(
    operations.Question,
    op=st.just("question"),
    question=RECORD_IDS,
    text=TEXTS,
    about=_tuples(RECORD_IDS),
    speaker=SPEAKERS,
)
OPERATIONS = st.one_of(
    OBSERVES,
    HYPOTHESIZES,
    SUPPORTS,
    UNDERMINES,
    REVISES,
    EXPANDS_AWARENESS,
    RESOLVES,
    QUESTIONS,
)

CANDIDATE_CLAIMS = st.one_of(
    _some(utterance.CandidateClaim, text=TEXTS, record=st.none() | RECORD_IDS),
    _some(utterance.CandidateClaim, text=TEXTS, records=_tuples(RECORD_IDS, min_size=1)),
)
POLICIES = st.none() | _some(
    policy.Policy,
    version=NAMES,
    forbidden=_tuples(
        _some(
            policy.Prohibition,
            roles=st.none() | _tuples(NAMES, min_size=1),
            acts=_tuples(st.sampled_from(policy.Act), min_size=1),
            kinds=st.none() | _tuples(st.sampled_from(["observation", "decision"]), min_size=1),
            introduced_by=st.none() | _tuples(NAMES, min_size=1),
        )
    ),
    deciders=st.none() | _tuples(NAMES),
)
SETUP_BODIES = _some(
    utterance.SetupBody,
    agents=st.dictionaries(NAMES, NAMES, max_size=3).map(
        lambda roles: tuple(utterance.Agent(id=id_, role=role) for id_, role in roles.items())
    ),
    variables=_tuples(RECORD_IDS),
    observes=st.dictionaries(NAMES, _tuples(RECORD_IDS), max_size=3),
    policy=POLICIES,
)
AUDIENCES = st.none() | _tuples(NAMES, min_size=1)
METADATA = st.dictionaries(
    TEXTS,
    st.one_of(
        TEXTS,
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.floats(-(2**53), 2**53),
        st.none(),
    ),
    max_size=3,
)
_SPOKEN = {
    "tenant_id": TENANT_IDS,
    "conversation_id": NAMES,
    "utterance_id": NAMES,
    "speaker": NAMES,
    "role": NAMES,
    "text": TEXTS,
    "at": MOMENTS,
    "audience": AUDIENCES,
    "metadata": METADATA,
}
STATEMENTS = _some(utterance.Utterance, **_SPOKEN, operations=st.none() | _tuples(OPERATIONS))
CANDIDATES = st.builds(
    lambda said, claims: said.model_copy(
        update={"kind": UtteranceKind.CANDIDATE, "claims": claims}
    ),
    _some(utterance.Utterance, **_SPOKEN),
    st.none() | _tuples(CANDIDATE_CLAIMS),
)
SETUPS = st.builds(
    lambda said, body: said.model_copy(update={"kind": UtteranceKind.SETUP, "setup": body}),
    _some(utterance.Utterance, **_SPOKEN),
    SETUP_BODIES,
)
UTTERANCES = STATEMENTS | CANDIDATES | SETUPS

REJECTIONS = _some(
    log.Rejection,
    index=COUNTS,
    code=st.sampled_from(log.RejectionCode),
    reason=TEXTS,
    records=_tuples(RECORD_IDS),
)
INTERPRETATIONS = _some(
    log.Interpretation,
    interpreter=CLAIMS,
    model=st.none() | TEXTS,
    prompt_id=st.none() | TEXTS,
    prompt_hash=st.none() | DIGESTS,
    parameters=st.dictionaries(TEXTS, TEXTS, max_size=2),
    attempts=COUNTS,
    tokens_in=COUNTS,
    tokens_out=COUNTS,
    milliseconds=COUNTS,
    rejections=_tuples(REJECTIONS),
)
_LOGGED = {
    "policy": POLICIES,
    "tenant_id": TENANT_IDS,
    "conversation_id": NAMES,
    "sequence": SEQUENCES,
    "rules_version": COUNTS,
    "utterance": _some(
        log.UtteranceRef,
        id=NAMES,
        digest=DIGESTS,
        topic=st.none() | TEXTS,
        partition=st.none() | COUNTS,
        offset=st.none() | COUNTS,
    ),
    "speaker": NAMES,
    "role": NAMES,
    "at": MOMENTS,
    "audience": AUDIENCES,
    "provenance": INTERPRETATIONS,
}
LOG_EVENTS = st.one_of(
    _some(
        log.OperationsAppended,
        type=st.just("standfast.operations.v1"),
        turn=COUNTS,
        operations=_tuples(OPERATIONS),
        fills_turn=st.none() | COUNTS,
        **_LOGGED,
    ),
    _some(
        log.InterpretationFailed,
        type=st.just("standfast.interpretation_failed.v1"),
        turn=COUNTS,
        reason=TEXTS,
        **_LOGGED,
    ),
    _some(
        log.CandidateAppended,
        type=st.just("standfast.candidate.v1"),
        claims=st.none() | _tuples(CANDIDATE_CLAIMS),
        **_LOGGED,
    ),
    _some(log.ConversationSetUp, type=st.just("standfast.setup.v1"), setup=SETUP_BODIES, **_LOGGED),
    _some(log.ConversationErased, type=st.just("standfast.conversation_erased.v1"), **_LOGGED),
)

_DERIVED = {
    "tenant_id": TENANT_IDS,
    "conversation_id": NAMES,
    "turn": COUNTS,
    "sequence": SEQUENCES,
    "event_id": DIGESTS,
}
IDS = _tuples(RECORD_IDS)
CANDIDATE_REFS = _some(
    derived.CandidateRef,
    utterance_id=NAMES,
    claim_index=st.none() | COUNTS,
    text=TEXTS,
    records=IDS,
)
CAUSES = _some(
    derived.Cause,
    op=st.sampled_from(["undermine", "revise"]),
    by=st.none() | RECORD_IDS,
    speaker=NAMES,
)
FAILURES = _some(
    derived.Failure,
    record=RECORD_IDS,
    standing=st.sampled_from(derived.Standing),
    since_turn=COUNTS,
    cause=CAUSES,
    path=IDS,
    path_omitted=COUNTS,
)
DERIVED_EVENTS = st.one_of(
    _some(
        derived.TurnEvent,
        utterance_id=NAMES,
        applied=_tuples(COUNTS),
        rejections=_tuples(REJECTIONS),
        ungrounded=IDS,
        failed=st.none() | TEXTS,
        notes=_tuples(
            _some(derived.Note, code=st.sampled_from(derived.NoteCode), text=TEXTS, records=IDS)
        ),
        digest=DIGESTS,
        state_digest=DIGESTS,
        **_DERIVED,
    ),
    _some(
        derived.VerdictEvent,
        candidate=st.none() | CANDIDATE_REFS,
        record=st.none() | RECORD_IDS,
        outcome=st.sampled_from(derived.Outcome),
        grade=st.none() | st.sampled_from(derived.Grade),
        support=IDS,
        failures=_tuples(FAILURES),
        support_complete=st.booleans(),
        failures_complete=st.booleans(),
        reason=st.none() | st.sampled_from(derived.VerdictReason),
        disputed=IDS,
        coverage=_some(
            derived.Coverage,
            complete=st.booleans(),
            missing_turns=_tuples(COUNTS),
            missing_count=COUNTS,
        ),
        digest=DIGESTS,
        **_DERIVED,
    ),
    _some(
        derived.RetractionImpact,
        withdrawn=RECORD_IDS,
        standing=st.sampled_from([derived.Standing.WEAKENED, derived.Standing.ABANDONED]),
        cause=st.sampled_from(["undermine", "revise"]),
        by=RECORD_IDS,
        direct=IDS,
        transitive=IDS,
        in_good_standing=IDS,
        newly_ungrounded=IDS,
        decisions=IDS,
        complete=st.booleans(),
        message=TEXTS,
        **_DERIVED,
    ),
    _some(
        derived.UngroundedAlert,
        record=st.none() | RECORD_IDS,
        candidate=st.none() | CANDIDATE_REFS,
        severity=st.sampled_from(derived.Severity),
        reason=st.sampled_from(derived.VerdictReason),
        message=TEXTS,
        **_DERIVED,
    ),
    _some(derived.ContextUpdate, text=TEXTS, **_DERIVED),
)
