"""The published JSON Schemas say what the models say, as far as a schema can say it."""

from __future__ import annotations

from functools import cache

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from schemas.contract import Contract
from schemas.generate import event_models, event_schema
from schemas.wire import canonical_bytes
from tests.contracts.examples import EVENT_TYPES, Document, changed, example, without
from tests.strategies import DERIVED_EVENTS, LOG_EVENTS, UTTERANCES

UTTERANCE = "standfast.utterance.v1"
OPERATIONS = "standfast.operations.v1"
SETUP = "standfast.setup.v1"
VERDICT = "standfast.verdict.v1"

#    event type, place, value
WRONG = [
    (UTTERANCE, "surprise", 1),
    (UTTERANCE, "tenant_id", "a/b"),
    (UTTERANCE, "speaker", ""),
    (UTTERANCE, "at", 1_772_332_260),
    (UTTERANCE, "kind", "shout"),
    (UTTERANCE, "audience", []),
    (UTTERANCE, "operations", {}),
    (UTTERANCE, "operations.0.op", "nonsense"),
    (UTTERANCE, "operations.1.premises.0", 7),
    (UTTERANCE, "operations.1.formula.node", "xor"),
    (UTTERANCE, "operations.1.formula.consequent.parts", []),
    (UTTERANCE, "operations.1.atoms.0.valid_from", "yesterday"),
    (UTTERANCE, "operations.1.atoms.0.polarity", "yes"),
    (UTTERANCE, "operations.3.specific", 1),
    (UTTERANCE, "operations.6.mode", "shouted"),
    (UTTERANCE, "metadata.line", [1]),
    (UTTERANCE, "policy", {}),
    (SETUP, "setup.policy.forbidden.0.acts", []),
    (SETUP, "setup.policy.forbidden.0.acts", ["forget"]),
    (OPERATIONS, "type", "standfast.operations.v2"),
    (OPERATIONS, "sequence", 0),
    (OPERATIONS, "turn", -1),
    (OPERATIONS, "utterance.digest", "0F" * 32),
    (OPERATIONS, "provenance.rejections.0.code", "because"),
    (OPERATIONS, "operations", [{"op": "question", "question": "q"}] * 257),
    (VERDICT, "outcome", "perhaps"),
    (VERDICT, "failures.0.standing", "gone"),
    (VERDICT, "event_id", "7"),
    (VERDICT, "coverage.complete", "no"),
]


@cache
def _validator(event_type: str) -> Draft202012Validator:
    return Draft202012Validator(event_schema(event_type))


def _model_accepts(event_type: str, document: Document) -> bool:
    model, _ = event_models()[event_type]
    try:
        model.model_validate_json(orjson.dumps(document))
    except ValidationError:
        return False
    return True


def _type_of(event: Contract) -> str:
    return next(name for name, (model, _) in event_models().items() if model is type(event))


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_each_schema_is_a_schema(event_type: str) -> None:
    """The file conforms to the dialect it names and has an id of its own."""
    schema = event_schema(event_type)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert schema["$id"] == f"urn:standfast:schema:{event_type}"


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_schema_and_model_accept_the_example(event_type: str) -> None:
    """A realistic event passes both."""
    assert _model_accepts(event_type, example(event_type))
    assert list(_validator(event_type).iter_errors(example(event_type))) == []


@pytest.mark.parametrize(("event_type", "place", "value"), WRONG)
def test_schema_and_model_refuse_the_same_error(event_type: str, place: str, value: object) -> None:
    """One wrong field in a realistic event fails both."""
    document = changed(event_type, place, value)
    assert not _model_accepts(event_type, document)
    assert not _validator(event_type).is_valid(document)


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_schema_and_model_require_the_same_fields(event_type: str) -> None:
    """Leaving out a required field fails both; leaving out another passes both on reading."""
    model, mode = event_models()[event_type]
    for name, field in model.model_fields.items():
        document = without(event_type, name)
        assert _model_accepts(event_type, document) is not field.is_required()
        may_be_missing = mode == "validation" and not field.is_required()
        assert _validator(event_type).is_valid(document) is may_be_missing, name


@settings(max_examples=50)
@given(event=UTTERANCES | LOG_EVENTS | DERIVED_EVENTS)
def test_every_event_that_is_written_fits_its_schema(event: Contract) -> None:
    """Whatever the models can hold, its canonical bytes are valid for readers elsewhere."""
    errors = _validator(_type_of(event)).iter_errors(orjson.loads(canonical_bytes(event)))
    assert list(errors) == []


@given(
    event_type=st.sampled_from(EVENT_TYPES),
    name=st.sampled_from(["speaker", "turn", "operations", "claims", "metadata", "records", "at"]),
    value=st.none() | st.integers() | st.text(max_size=4) | st.lists(st.text(max_size=4)),
)
def test_the_schema_is_nowhere_stricter_than_the_model(
    event_type: str, name: str, value: object
) -> None:
    """A document that the model reads is never refused by the schema."""
    document = {**example(event_type), name: value}
    try:
        written = orjson.dumps(document)
    except orjson.JSONEncodeError:  # an integer of more than 64 bits is no field of ours
        return
    model, _ = event_models()[event_type]
    try:
        model.model_validate_json(written)
    except ValidationError:
        return
    assert _validator(event_type).is_valid(document)
