"""Every contract is frozen, strict, closed and bounded, also one that is added tomorrow."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import orjson
import pytest
from pydantic import TypeAdapter, ValidationError

import schemas
from schemas.contract import Contract
from schemas.generate import event_models, event_schema
from schemas.wire import WireError, decode_utterance
from tests.contracts.examples import EVENT_TYPES, changed, example

for _module in pkgutil.iter_modules(schemas.__path__):
    importlib.import_module(f"schemas.{_module.name}")


def _contracts(base: type[Contract] = Contract) -> Iterator[type[Contract]]:
    for model in base.__subclasses__():
        if model.__module__.startswith("schemas."):
            yield model
        yield from _contracts(model)


CONTRACTS = sorted(set(_contracts()), key=lambda model: model.__qualname__)
READ = [name for name, (_, mode) in event_models().items() if mode == "validation"]
WRITTEN = [name for name, (_, mode) in event_models().items() if mode == "serialization"]


def _read(event_type: str, document: object) -> Contract:
    model, _ = event_models()[event_type]
    return model.model_validate_json(orjson.dumps(document))


def _nodes(schema: object, place: str = "") -> Iterator[tuple[str, dict[str, object]]]:
    """Every schema node with its place; keywords that hold data, not schemas, are passed over."""
    if isinstance(schema, list):
        for at, part in enumerate(schema):
            yield from _nodes(part, f"{place}/{at}")
    if isinstance(schema, dict):
        yield place, schema
        for key, part in schema.items():
            if key not in ("default", "const", "enum", "required"):
                yield from _nodes(part, f"{place}/{key}")


def _unbounded(schema: object, kinds: tuple[str, ...]) -> list[str]:
    bounds = {
        "string": ("maxLength", "pattern", "enum", "const", "format"),
        "array": ("maxItems",),
        "object": ("properties", "maxProperties"),
        "integer": ("maximum",),
    }
    return [
        place
        for place, node in _nodes(schema)
        if node.get("type") in kinds and not any(key in node for key in bounds[str(node["type"])])
        if not (node["type"] == "object" and node.get("additionalProperties") is False)
    ]


@pytest.mark.parametrize("model", CONTRACTS, ids=lambda model: model.__qualname__)
def test_every_contract_is_configured_frozen_strict_and_closed(model: type[Contract]) -> None:
    """No contract loosens the configuration of the base class."""
    assert model.model_config.get("frozen") is True
    assert model.model_config.get("strict") is True
    assert model.model_config.get("extra") == "forbid"
    assert model.model_config.get("allow_inf_nan") is False


def test_the_walk_over_the_contracts_finds_them() -> None:
    """The walk reaches nested contracts as well as events, so the other tests are not empty."""
    names = {model.__name__ for model in CONTRACTS}
    assert {"Atom", "NotNode", "Resolve", "Interpretation", "VerdictEvent", "Coverage"} <= names


def test_there_is_one_example_per_event_type() -> None:
    """Examples and event types are the same set, so that no type goes untested."""
    assert set(EVENT_TYPES) == set(event_models())


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_an_event_cannot_be_changed(event_type: str) -> None:
    """Assigning to a field of a read event raises and leaves the event as it was."""
    event = _read(event_type, example(event_type))
    before = event.model_dump_json()
    for name in type(event).model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(event, name, None)
    assert event.model_dump_json() == before


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_an_unknown_field_is_refused(event_type: str) -> None:
    """A field that the contract does not declare is an error, not something to drop."""
    with pytest.raises(ValidationError, match="Extra inputs"):
        _read(event_type, changed(event_type, "surprise", 1))


@pytest.mark.parametrize(
    ("event_type", "place", "value"),
    [
        ("standfast.utterance.v1", "text", 1),
        ("standfast.utterance.v1", "operations.1.atoms.0.polarity", 1),
        ("standfast.utterance.v1", "operations.3.specific", "true"),
        ("standfast.operations.v1", "sequence", "7"),
        ("standfast.operations.v1", "sequence", 7.0),
        ("standfast.operations.v1", "sequence", True),
        ("standfast.operations.v1", "operations", {}),
        ("standfast.turn.v1", "applied", "012"),
        ("standfast.verdict.v1", "coverage.complete", 0),
    ],
)
def test_nothing_is_converted(event_type: str, place: str, value: object) -> None:
    """A value of a neighbouring type is refused, because strict models guess nothing."""
    with pytest.raises(ValidationError):
        _read(event_type, changed(event_type, place, value))


@pytest.mark.parametrize("event_type", READ)
def test_everything_that_is_read_is_bounded(event_type: str) -> None:
    """Each string, list, number and free object of an input has an upper bound."""
    kinds = ("string", "array", "object", "integer")
    assert _unbounded(event_schema(event_type), kinds) == []


@pytest.mark.parametrize("event_type", WRITTEN)
def test_only_id_lists_of_derived_events_are_unbounded(event_type: str) -> None:
    """What the reducer emits may list every record of a conversation, but has no endless text."""
    assert _unbounded(event_schema(event_type), ("string", "object", "integer")) == []


def test_the_search_for_unbounded_parts_finds_them() -> None:
    """A schema with an endless string, list and object is reported with its places."""
    schema = TypeAdapter(dict[str, list[str]]).json_schema()
    found = _unbounded({"properties": {"a": schema}}, ("string", "array", "object"))
    assert found == [
        "/properties/a",
        "/properties/a/additionalProperties",
        "/properties/a/additionalProperties/items",
    ]


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_no_contract_holds_a_set(event_type: str) -> None:
    """A set has no order, so its bytes would follow the hash seed."""
    assert [
        place for place, node in _nodes(event_schema(event_type)) if "uniqueItems" in node
    ] == []


@pytest.mark.parametrize("under", [None, "setup"])
def test_a_setup_declares_one_role_for_each_agent(under: str | None) -> None:
    """Of two roles one would be ignored, so they are refused; the same role twice is harmless."""

    def declared(*roles: str) -> bytes:
        agents = {"agents": [{"id": "ann", "role": role} for role in roles]}
        body = agents if under is None else {under: agents}
        said = {"conversation_id": "c", "utterance_id": "u", "speaker": "ann", "kind": "setup"}
        return orjson.dumps({**said, "at": "2026-03-01T02:31:00Z", **body})

    assert decode_utterance(declared("user", "user")).setup_body().agents
    with pytest.raises(WireError, match="'ann' is declared with two"):
        decode_utterance(declared("user", "lead"))
