"""Mutated utterances: the schema and the model accept the same ones."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from schemas.generate import event_schema
from schemas.utterance import Utterance
from schemas.wire import canonical_bytes
from tests.contracts.examples import Document, example
from tests.strategies import UTTERANCES

UTTERANCE = "standfast.utterance.v1"
SCHEMA = Draft202012Validator(event_schema(UTTERANCE))
BASE = {
    "conversation_id": "c",
    "utterance_id": "u",
    "speaker": "ann",
    "at": "2026-03-01T02:31:00Z",
}
NOT_IN_A_SCHEMA = (
    "there is no such date",
    "a moment is written in ISO 8601",
    "the moment lies outside the calendar",
    "inline records nest at most",
    "a formula has at most",
    "an agent has one role",
)
"""What the model checks and no JSON Schema can say: calendars, depths, two entries compared."""

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63, 0.5, 1e300, -1e16),
    *("", "a", "h1", "a b", "-", "/", "x" * 129, "statement", "candidate", "setup", "atom"),
    *("2026-03-01T02:31:00Z", "2026-03-01T02:31:00", "2026-13-01T02:31:00Z", "2026-03", "17"),
    *([], ["a"], ["a", "b"], [None], [[]], ["a b"], ["a"] * 65, ["a"] * 600),
    *({}, {"a": 1}, {"a b": ["x"]}, {"a": ["x"]}, {"record": "r"}, {"record": "r", "claim": "c"}),
    *({"id": "a"}, {"id": "a", "role": "b"}, {"agents": [{"id": "a"}]}, {"policy": {}}),
    *({"version": "v"}, {"version": "v", "forbidden": [{"acts": ["revise"]}], "deciders": ["a"]}),
    *([{"text": "t", "record": "r", "records": ["s"]}], [{"op": "question", "question": "q"}]),
]
KEYS = (*Utterance.model_fields, "record", "records", "claim", "op", "id", "premises", "surprise")

Place = tuple[Any, Any]


def places(document: Any) -> Iterator[Place]:
    """Every (container, key or index) of a document."""
    items = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in items:
        yield document, key
        yield from places(value)


@st.composite
def mutated(draw: st.DrawFn) -> Document:
    """An utterance in which a few places were replaced, removed or added."""
    written = st.builds(lambda said: orjson.loads(canonical_bytes(said)), UTTERANCES)
    document = draw(written | st.just(example(UTTERANCE)) | st.just(dict(BASE)))
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from([*places(document), (document, "kind")]))
        match draw(st.sampled_from(["replace", "replace", "remove", "add"])):
            case "replace":
                container[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))
            case "remove" if key in document or isinstance(container, list):
                del container[key]
            case _ if isinstance(container, dict):
                value = copy.deepcopy(draw(st.sampled_from(VALUES)))
                container[draw(st.sampled_from(KEYS))] = value
    return document


def complaints(document: Document) -> list[str]:
    """What the model says against a document."""
    try:
        Utterance.model_validate_json(orjson.dumps(document))
    except ValidationError as invalid:
        return [error["msg"] for error in invalid.errors()]
    return []


@settings(max_examples=400)
@given(mutated())
def test_schema_and_model_accept_the_same_utterances(document: Document) -> None:
    """They differ only where the model checks something that no schema can say."""
    said = complaints(document)
    if any(known in each for each in said for known in NOT_IN_A_SCHEMA):
        return
    assert SCHEMA.is_valid(document) is (not said), said


@pytest.mark.parametrize(
    ("fields", "accepted"),
    [
        ({"kind": "candidate", "claims": [{"record": "h1", "records": ["h1"]}]}, False),
        ({"kind": "candidate", "claims": [{"record": "h1", "records": None}]}, True),
        ({"kind": "candidate", "claims": [{"record": None, "records": ["h1"]}]}, True),
        ({"claims": []}, False),
        ({"claims": None}, True),
        ({"kind": "candidate", "operations": []}, False),
        ({"kind": "setup", "operations": []}, False),
        ({"operations": []}, True),
        ({"agents": []}, False),
        ({"setup": {}}, False),
        ({"kind": "setup", "agents": [{"id": "a"}]}, True),
        ({"kind": "setup", "setup": {}, "variables": []}, False),
        ({"kind": "setup", "setup": {}, "variables": None}, True),
        ({"kind": "setup", "observes": {"no name": []}}, False),
        ({"kind": "setup", "setup": {"observes": {"no name": []}}}, False),
        ({"operations": [{"op": "expand_awareness", "proposition": "p", "claim": "c"}]}, False),
        ({"metadata": {"n": 2**53}}, True),
        ({"metadata": {"n": 2**53 + 1}}, False),
        ({"metadata": {"n": -(2**53) - 1}}, False),
        ({"metadata": {"n": 1e17}}, False),
        ({"metadata": {"n": 0.25}}, True),
        ({"at": "1772332260"}, False),
        ({"at": "2026-03-01T02:31:00"}, False),
        ({"at": "2026-03-01 02:31+01:00"}, True),
    ],
)
def test_what_is_checked_between_fields_is_in_both(fields: Document, accepted: bool) -> None:
    """Fields that exclude or need each other, and bounds of numbers and moments."""
    document = {**BASE, **fields}
    assert (complaints(document) == []) is accepted
    assert SCHEMA.is_valid(document) is accepted
