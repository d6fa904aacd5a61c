"""Reads a model's reply back into contract models, strictly.

What is no reply at all raises BadReply: that is never "no operations". An operation that is invalid
is refused by itself, with the reason and its place in the reply; the others stand.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import orjson

from processor.interpreter.extract import RATIONALE, BadReply, find_object
from processor.interpreter.native import parse_formulas
from processor.interpreter.reply_schema import CANDIDATE, STATEMENT
from schemas.contract import OPERATIONS_MAX, REFERENCES_MAX
from schemas.log import Rejection, RejectionCode
from schemas.operations import Operation
from schemas.utterance import CandidateClaim
from schemas.wire import WireError, decode_contract, decode_operation

_FORMULA_PLACE = "operations.0."


@final
class StatementReply(NamedTuple):
    """The operations of a reply, and those that are none, by their place in the reply."""

    operations: tuple[Operation, ...]
    rejections: tuple[Rejection, ...]


def read_statement(text: str, speaker: str) -> StatementReply:
    """The operations that a reply brings for what `speaker` said. Raises BadReply."""
    operations: list[Operation] = []
    rejections: list[Rejection] = []
    for index, written in enumerate(_listed(text, STATEMENT, OPERATIONS_MAX)):
        try:
            operations.append(_operation(written, speaker))
        except WireError as invalid:
            code = RejectionCode.INVALID_OPERATION
            rejections.append(Rejection(index=index, code=code, reason=str(invalid)))
    if rejections and not operations:
        raise BadReply(f"no operation in the answer is valid; the first: {rejections[0].reason}")
    return StatementReply(tuple(operations), tuple(rejections))


def read_candidate(text: str) -> tuple[CandidateClaim, ...]:
    """The claims that a reply finds in a draft. Raises BadReply.

    Ids that can name no record leave their claim without any, so that it is not taken for grounded.
    """
    return tuple(
        _claim(written, f"{CANDIDATE}.{index}")
        for index, written in enumerate(_listed(text, CANDIDATE, REFERENCES_MAX))
    )


def _listed(text: str, key: str, count_max: int) -> list[Any]:
    reply = find_object(text, key)
    others = [name for name in reply if name not in (RATIONALE, key)]
    if others:
        raise BadReply(f"the answer has a field that was not asked for: {others[0][:64]!r}")
    listed = reply[key]
    if not isinstance(listed, list):
        raise BadReply(f"{key!r} is not a list")
    if len(listed) > count_max:
        raise BadReply(f"{len(listed)} {key}; at most {count_max} are read")
    return listed


def _operation(written: Any, speaker: str) -> Operation:
    """One operation with its formulas as trees. Raises WireError."""
    said = _without_nulls(written)
    if isinstance(said, dict) and said.get("speaker") == speaker:
        del said["speaker"]
    if isinstance(said, dict) and "speaker" in said:
        raise WireError("speaker", f"an operation is made by {speaker!r}, who speaks")
    operation = decode_operation(orjson.dumps(said))
    try:
        return parse_formulas([operation])[0]
    except WireError as invalid:
        place = invalid.place.removeprefix(_FORMULA_PLACE)
        raise WireError(place, invalid.problem) from invalid


def _claim(written: Any, place: str) -> CandidateClaim:
    said = _without_nulls(written)
    text = said.get("text") if isinstance(said, dict) else None
    if not isinstance(text, str) or not text or set(said) - {"text", "records"}:
        raise BadReply(f"{place} is not a text and the records that it rests on")
    try:
        alone = decode_contract(CandidateClaim, orjson.dumps({"text": text}))
    except WireError as invalid:
        raise BadReply(f"{place}.{invalid}") from invalid
    if not said.get("records"):
        return alone
    try:
        return decode_contract(CandidateClaim, orjson.dumps(said))
    except WireError:
        return alone


def _without_nulls(written: Any) -> Any:
    """Null says the same as a field that is left out; a schema that requires all needs it."""
    if isinstance(written, dict):
        return {name: _without_nulls(each) for name, each in written.items() if each is not None}
    return [_without_nulls(each) for each in written] if isinstance(written, list) else written
