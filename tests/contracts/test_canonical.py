"""Canonical bytes: equal values have equal bytes, on every machine and under every hash seed."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys

import orjson
import pytest
from hypothesis import given
from pydantic import ValidationError

from schemas.contract import Contract
from schemas.derived import DerivedEvent
from schemas.evidence import Atom
from schemas.formula import FORMULA_DEPTH_MAX, AtomNode, ConstantNode, FormulaNode, NotNode
from schemas.generate import event_models
from schemas.log import CandidateAppended, LogEvent
from schemas.operations import INLINE_DEPTH_MAX, InlineRecord, Observe, Question
from schemas.topics import LOG_TYPES
from schemas.utterance import Utterance
from schemas.wire import (
    WireError,
    canonical_bytes,
    canonical_content,
    decode_log_event,
    decode_utterance,
)
from tests.contracts.examples import EVENT_TYPES, example
from tests.strategies import DERIVED_EVENTS, LOG_EVENTS, UTTERANCES

_BYTES_OF_THE_EXAMPLES = """
import hashlib, orjson
from schemas.generate import event_models
from schemas.wire import canonical_bytes, canonical_content
from tests.contracts.examples import EVENT_TYPES, example
written = hashlib.sha256()
for event_type in EVENT_TYPES:
    model, _ = event_models()[event_type]
    event = model.model_validate_json(orjson.dumps(example(event_type)))
    written.update(canonical_bytes(event))
    written.update(canonical_content(event))
print(written.hexdigest())
"""


def _event(event_type: str) -> Contract:
    model, _ = event_models()[event_type]
    return model.model_validate_json(orjson.dumps(example(event_type)))


def _as_in_version_1(event_type: str) -> Contract:
    """The example without the fields that came later."""
    document = example(event_type)
    document.pop("supersession", None)
    for operation in document.get("operations", ()):
        for atom in operation.get("atoms", ()):
            atom.pop("facet")
    model, _ = event_models()[event_type]
    return model.model_validate_json(orjson.dumps(document))


def _candidate(claims: object) -> CandidateAppended:
    document = example("standfast.candidate.v1")
    document["claims"] = claims
    return CandidateAppended.model_validate_json(orjson.dumps(document))


@given(event=LOG_EVENTS)
def test_a_log_event_survives_the_round_trip(event: LogEvent) -> None:
    """Reading what was written gives the same event, and writing that gives the same bytes."""
    written = canonical_bytes(event)
    read = decode_log_event(written)
    assert read == event
    assert canonical_bytes(read) == written


@given(utterance=UTTERANCES)
def test_an_utterance_survives_the_round_trip(utterance: Utterance) -> None:
    """Reading what was written gives the same utterance with the same bytes."""
    written = canonical_bytes(utterance)
    read = decode_utterance(written)
    assert read == utterance
    assert canonical_bytes(read) == written


@given(event=DERIVED_EVENTS)
def test_a_derived_event_survives_the_round_trip(event: DerivedEvent) -> None:
    """A reader of a derived event gets the event that was emitted."""
    written = canonical_bytes(event)
    read = type(event).model_validate_json(written)
    assert read == event
    assert canonical_bytes(read) == written


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_canonical_bytes_have_one_form(event_type: str) -> None:
    """Keys are sorted, nothing is padded, and every field of the contract is there."""
    event = _event(event_type)
    written = canonical_bytes(event)
    assert written == orjson.dumps(orjson.loads(written), option=orjson.OPT_SORT_KEYS)
    assert set(orjson.loads(written)) == set(type(event).model_fields)


def test_the_hash_seed_leaves_no_trace() -> None:
    """Five processes with different hash seeds write the same bytes."""
    written = {
        subprocess.run(
            [sys.executable, "-c", _BYTES_OF_THE_EXAMPLES],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2", "4711", "4294967295")
    }
    assert len(written) == 1


def test_the_content_of_version_1_is_fixed() -> None:
    """The content of these log events is this for ever, or digests of old logs would change."""
    content = b"\n".join(canonical_content(_as_in_version_1(name)) for name in LOG_TYPES)
    assert hashlib.sha256(content).hexdigest() == (
        "5802f7ddfde9df7fb09af05ddd0d3e12cb731d35c9a60495fa49b87d5931772c"
    )


def test_silent_fields_are_not_part_of_the_content() -> None:
    """A default that says nothing has the content of a field that was not there."""
    bare = Question(op="question", question="q1")
    full = Question(op="question", question="q1", text="", about=(), speaker=None)
    assert canonical_content(full) == canonical_content(bare)
    assert canonical_content(bare) == b'{"op":"question","question":"q1"}'


def test_a_field_added_with_a_silent_default_keeps_the_content() -> None:
    """A later version of a contract has the old content as long as the new field is not used."""

    class LaterQuestion(Question):
        """Question as a later version might have it."""

        urgent: bool = False

    old, new = (
        model(op="question", question="q1", about=("o1",)) for model in (Question, LaterQuestion)
    )
    assert canonical_content(new) == canonical_content(old)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(_candidate(None), _candidate([]), id="not-associated-or-no-claims"),
        pytest.param(
            Atom(entity="e", attribute="a", value="v", of=None),
            Atom(entity="e", attribute="a", value="v", of=()),
            id="every-atom-or-none",
        ),
        pytest.param(
            Atom(entity="e", attribute="a", value="v", polarity=False),
            Atom(entity="e", attribute="a", value="v", polarity=True),
            id="polarity",
        ),
        pytest.param(
            ConstantNode(node="constant", value=False),
            ConstantNode(node="constant", value=True),
            id="constant",
        ),
    ],
)
def test_different_meanings_have_different_content(one: Contract, other: Contract) -> None:
    """Leaving out what is silent never makes two events with different meanings look alike."""
    assert canonical_content(one) != canonical_content(other)


@given(one=LOG_EVENTS, other=LOG_EVENTS)
def test_only_equal_events_have_equal_content(one: LogEvent, other: LogEvent) -> None:
    """Content is as good as the event: it is equal exactly if the events are."""
    assert (canonical_content(one) == canonical_content(other)) == (one == other)


@pytest.mark.parametrize("write", [canonical_bytes, canonical_content])
def test_what_is_no_contract_has_no_bytes(write: object) -> None:
    """A set or an object that merely looks like data raises instead of being written somehow."""
    with pytest.raises(TypeError):
        write({"a": {1, 2}})


def _negations(depth: int) -> FormulaNode:
    formula: FormulaNode = AtomNode(node="atom", name="p")
    for _ in range(depth - 1):
        formula = NotNode(node="not", formula=formula)
    return formula


def test_the_deepest_formula_can_be_written_and_read() -> None:
    """The bound on formulas lies below the depth at which readers of JSON give up."""
    said = example("standfast.operations.v1")
    deepest = Observe(op="observe", record="o9", claim="c", formula=_negations(FORMULA_DEPTH_MAX))
    nested = InlineRecord(record="r0", claim="c", formula=deepest.formula)
    for level in range(1, INLINE_DEPTH_MAX):
        nested = InlineRecord(record=f"r{level}", claim="c", premises=(nested,))
    said["operations"] = [
        orjson.loads(canonical_bytes(deepest)),
        {"op": "observe", "record": "o8", "claim": "c"},
    ]
    said["operations"][1]["premises"] = [orjson.loads(canonical_bytes(nested))]
    event = decode_log_event(orjson.dumps(said))
    assert decode_log_event(canonical_bytes(event)) == event


def test_deeper_nesting_is_refused_before_it_can_be_logged() -> None:
    """An event that could be written but never read again cannot be built."""
    with pytest.raises(ValidationError, match="levels"):
        Observe(op="observe", record="o", claim="c", formula=_negations(FORMULA_DEPTH_MAX + 1))
    nested = InlineRecord(record="r", claim="c")
    for _ in range(INLINE_DEPTH_MAX - 1):
        nested = InlineRecord(record="r", claim="c", premises=(nested,))
    with pytest.raises(ValidationError, match="nest"):
        InlineRecord(record="r", claim="c", premises=(nested,))


def test_a_refusal_crosses_process_boundaries() -> None:
    """A wire error survives pickling with its place, as a pool of processes needs."""
    error = pickle.loads(pickle.dumps(WireError("operations.0", "no such thing")))
    assert (error.place, error.problem) == ("operations.0", "no such thing")
    assert str(error) == "operations.0: no such thing"
