"""Canonical bytes: how a contract is written and read back.

Writing sorts keys and leaves nothing to the platform; reading is strict and names the place of an
error. A canonical *content* form, which digests use, also leaves out fields that say nothing (null,
false or empty, and that by default), so that a field added later with such a default does not
change old digests, while null and empty stay apart where they mean different things.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar, get_args

import orjson
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json

from schemas.contract import Contract
from schemas.derived import DerivedEvent
from schemas.evidence import Atom
from schemas.formula import FormulaNode
from schemas.log import LogEvent
from schemas.operations import Operation
from schemas.policy import Policy
from schemas.upcast import UPCASTERS, Upcasters, upcast
from schemas.utterance import Utterance

AnyContract = TypeVar("AnyContract", bound=Contract)

_WRITE = orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z

_MESSAGE_CHARS_MAX = 1_024
PIECE_VALUES = 100
"""Of a long list, written at once; a millisecond of records, however long the list."""

_DERIVED: dict[str, type[DerivedEvent]] = {kind.TYPE: kind for kind in get_args(DerivedEvent)}
_LOG_EVENT: TypeAdapter[LogEvent] = TypeAdapter(LogEvent)
_ATOMS: TypeAdapter[tuple[Atom, ...]] = TypeAdapter(tuple[Atom, ...])
_FORMULA: TypeAdapter[FormulaNode] = TypeAdapter(FormulaNode)
_OPERATION: TypeAdapter[Operation] = TypeAdapter(Operation)


class WireError(ValueError):
    """Bytes that are no valid contract; `place` is the path of the first bad field.

    `str(error)` reads `operations.0.record: String should match pattern ...`, on one line and of
    bounded length whatever the bytes were. `place` is empty where the whole document is at fault.
    """

    def __init__(self, place: str, problem: str) -> None:
        self.place = _one_line(place)
        self.problem = _one_line(problem)
        super().__init__(f"{self.place}: {self.problem}" if place else self.problem)

    def __reduce__(self) -> tuple[type[WireError], tuple[str, str]]:
        """Pickle by the two arguments, so that the error crosses process boundaries."""
        return type(self), (self.place, self.problem)


def canonical_bytes(contract: object) -> bytes:
    """The stored form of a contract or a plain value: sorted keys, UTF-8, every field."""
    return orjson.dumps(contract, default=_fields, option=_WRITE)


def canonical_list(values: Iterable[object]) -> object:
    """A list to stand in what `canonical_bytes` writes; it is written a piece at a time.

    Writing keeps other threads from running: they get their turn between two pieces.
    """
    iterator = iter(values)
    pieces = iter(lambda: list(islice(iterator, PIECE_VALUES)), [])
    return orjson.Fragment(
        b"[" + b",".join(canonical_bytes(piece)[1:-1] for piece in pieces) + b"]"
    )


def canonical_content(value: object) -> bytes:
    """The digested form of a contract or a plain value: sorted keys, silent fields left out."""
    return orjson.dumps(value, default=_telling_fields, option=_WRITE)


def decode_utterance(line: bytes) -> Utterance:
    """Read one utterance. Raises WireError with the place of the first error."""
    return decode_contract(Utterance, line)


def decode_contract(contract: type[AnyContract], written: bytes) -> AnyContract:
    """Read one contract that somebody sent. Raises WireError with the place of the first error."""
    try:
        read = contract.model_validate_json(written)
    except ValidationError as invalid:
        raise _wire_error(invalid, written) from invalid
    _REFUSING_REPEATS.decode(written.decode())
    return read


def decode_log_event(stored: bytes, upcasters: Upcasters = UPCASTERS) -> LogEvent:
    """Read one event of the log, bringing old versions up to date first. Raises WireError."""
    try:
        return _LOG_EVENT.validate_json(stored)
    except ValidationError as invalid:
        current = upcast(stored, upcasters)
        if current is None:
            raise _wire_error(invalid, stored) from invalid
    try:
        return _LOG_EVENT.validate_json(current)
    except ValidationError as invalid:
        raise _wire_error(invalid, current) from invalid


def decode_derived_event(type_: str, stored: bytes) -> DerivedEvent:
    """Read a derived event of a type that this version writes. Raises WireError."""
    try:
        return _DERIVED[type_].model_validate_json(stored)
    except ValidationError as invalid:
        raise _wire_error(invalid, stored) from invalid


def decode_operation(stored: bytes) -> Operation:
    """Read one operation. Raises WireError."""
    try:
        return _OPERATION.validate_json(stored)
    except ValidationError as invalid:
        raise _wire_error(invalid, stored) from invalid


def decode_atoms(stored: bytes) -> tuple[Atom, ...]:
    """Read a list of evidence atoms. Raises WireError."""
    try:
        return _ATOMS.validate_json(stored)
    except ValidationError as invalid:
        raise _wire_error(invalid, stored) from invalid


def decode_formula(stored: bytes) -> FormulaNode:
    """Read the tree of a formula. Raises WireError."""
    try:
        return _FORMULA.validate_json(stored)
    except ValidationError as invalid:
        raise _wire_error(invalid, stored) from invalid


def decode_policy(stored: bytes) -> Policy:
    """Read an authority policy that is stored in a snapshot. Raises WireError."""
    try:
        return Policy.model_validate_json(stored)
    except ValidationError as invalid:
        raise _wire_error(invalid, stored) from invalid


def decode_json(stored: bytes) -> JsonValue:
    """Read any JSON. Raises WireError."""
    try:
        value: JsonValue = orjson.loads(stored)
    except orjson.JSONDecodeError as broken:
        raise WireError("", str(broken)) from broken
    return value


def _refuse_repeated_names(fields: list[tuple[str, object]]) -> None:
    """An object that says one thing twice says two things; readers of JSON keep one silently."""
    if len(dict(fields)) == len(fields):
        return
    seen: set[str] = set()
    for name, _ in fields:
        if name in seen:
            raise WireError(name, "stands twice in one object")
        seen.add(name)


_REFUSING_REPEATS = json.JSONDecoder(object_pairs_hook=_refuse_repeated_names)


def _fields(value: object) -> dict[str, Any]:
    if type(value) not in _SILENT_VALUES:
        _learn(type(value))
    return value.__dict__


def _telling_fields(value: object) -> dict[str, Any]:
    silent = _SILENT_VALUES.get(type(value)) or _learn(type(value))
    return {name: field for name, field in value.__dict__.items() if field or field != silent[name]}


_SILENT_VALUES: dict[type, dict[str, object]] = {}
"""What each field of a contract is when it says nothing: its default, if null, false or empty."""


def _learn(contract: type) -> dict[str, object]:
    """Look a contract up in a table of ours: asking pydantic takes as long as all the writing."""
    if not issubclass(contract, BaseModel):
        raise TypeError(f"{contract.__name__} has no canonical bytes")
    silent: dict[str, object] = {
        name: field.get_default(call_default_factory=True, validated_data={})
        for name, field in contract.model_fields.items()
    }
    _SILENT_VALUES[contract] = silent
    return silent


def _wire_error(invalid: ValidationError, written: bytes) -> WireError:
    """The first bad field; of the branches of a union tried there, the one that got furthest."""
    errors = invalid.errors(include_url=False, include_input=False)
    try:
        document = from_json(written)
    except ValueError:
        return WireError("", problem_of(errors[0]))
    places = [_place(error, document) for error in errors]
    first = places[0]
    furthest = max(
        (at for at, place in enumerate(places) if place[: len(first)] == first),
        key=lambda at: (len(places[at]), not errors[at]["type"].endswith("_type")),
    )
    return WireError(".".join(map(str, places[furthest])), problem_of(errors[furthest]))


def problem_of(error: ErrorDetails) -> str:
    """What is wrong, without what our callers can see: that it is a value, that it is line 1."""
    message = error["msg"].removeprefix("Value error, ")
    return message.replace(" at line 1 column ", " at column ")


def _place(error: ErrorDetails, document: Any) -> tuple[int | str, ...]:
    """The path as it stands in the document: without the names of unions' branches."""
    place: list[int | str] = []
    here = document
    for part in error["loc"]:
        if _holds(here, part):
            here = here[part]
            place.append(part)
    if error["type"] == "missing":
        place.append(error["loc"][-1])
    elif error["type"] in ("union_tag_not_found", "union_tag_invalid"):
        place.append(error["ctx"]["discriminator"].strip("'"))
    return tuple(place)


def _holds(here: object, part: int | str) -> bool:
    if isinstance(here, dict):
        return part in here
    return isinstance(here, list) and isinstance(part, int) and part < len(here)


def _one_line(text: str) -> str:
    """Printable and of bounded length: keys and tags of hostile input stand in messages."""
    short = text[:_MESSAGE_CHARS_MAX]
    return short if short.isprintable() else ascii(short)[1:-1]
