"""Old event versions read as the current models, step by step."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import example as hypothesis_example
from hypothesis import given
from hypothesis import strategies as st

from schemas.log import OperationsAppended
from schemas.operations import Observe
from schemas.upcast import UPCASTERS, Fields, Upcasters
from schemas.wire import WireError, canonical_bytes, decode_log_event
from tests.contracts.examples import Document, example

OLD = "standfast.operations.v0"
OLDER = "standfast.operations.draft"
CURRENT = "standfast.operations.v1"


def _premises_were_called_deps(fields: Fields) -> Fields:
    """Version 0 had `deps` in place of `premises`, and no role: everybody was a user."""
    operations = fields.get("operations")
    if isinstance(operations, list):
        operations = [_renamed(operation) for operation in operations]
    return {"role": "user", **fields, "operations": operations}


def _renamed(operation: object) -> object:
    if not isinstance(operation, dict) or "deps" not in operation:
        return operation
    others = {name: value for name, value in operation.items() if name != "deps"}
    return {**others, "premises": operation["deps"]}


def _turns_counted_from_0(fields: Fields) -> Fields:
    """The draft counted turns from 0."""
    turn = fields.get("turn")
    return {**fields, "turn": turn + 1 if isinstance(turn, int) else turn}


STEPS: Upcasters = {
    OLDER: (OLD, _turns_counted_from_0),
    OLD: (CURRENT, _premises_were_called_deps),
}


def _stored(event_type: str, **changes: object) -> bytes:
    document: Document = {
        "type": event_type,
        "tenant_id": "harbour",
        "conversation_id": "crane-3",
        "sequence": 4,
        "turn": 3,
        "rules_version": 1,
        "utterance": {"id": "u-4", "digest": "0f" * 32},
        "speaker": "mira",
        "at": "2026-01-09T08:00:00+01:00",
        "provenance": {"interpreter": "native"},
        "operations": [
            {"op": "observe", "record": "o2", "claim": "The hook drops.", "deps": ["o1"]},
            {"op": "question", "question": "q1", "text": "Since when?"},
        ],
        **changes,
    }
    return orjson.dumps(document)


def test_an_old_event_reads_as_the_current_model() -> None:
    """Version 0, with `deps` and without a role, gives the event that version 1 would have."""
    event = decode_log_event(_stored(OLD), STEPS)
    assert isinstance(event, OperationsAppended)
    assert (event.type, event.role, event.turn) == (CURRENT, "user", 3)
    assert isinstance(event.operations[0], Observe)
    assert event.operations[0].premises == ("o1",)


def test_steps_chain() -> None:
    """An event two versions back passes through both steps in order."""
    event = decode_log_event(_stored(OLDER, turn=2), STEPS)
    assert event == decode_log_event(_stored(OLD, turn=3), STEPS)


def test_an_upcast_event_is_stored_in_the_current_form() -> None:
    """Writing an old event that was read gives bytes that need no step to be read again."""
    event = decode_log_event(_stored(OLD), STEPS)
    assert decode_log_event(canonical_bytes(event), {}) == event


def test_steps_leave_the_current_version_alone() -> None:
    """A current event is read as it stands, also where steps are registered for it by mistake."""
    current = orjson.dumps(example(CURRENT))
    steps: Upcasters = {**STEPS, CURRENT: ("standfast.operations.v2", lambda fields: {})}
    assert decode_log_event(current, steps) == decode_log_event(current, {})


def test_a_loop_of_steps_raises() -> None:
    """Steps that lead back to where they began are a broken program, not bad input."""
    steps: Upcasters = {
        OLD: (OLDER, lambda fields: fields),
        OLDER: (OLD, lambda fields: fields),
    }
    with pytest.raises(AssertionError, match="loop"):
        decode_log_event(_stored(OLD), steps)


@pytest.mark.parametrize(
    "event_type", ["standfast.operations.v2", "other.operations.v1", "", None, 7, [], {}, ["v0"]]
)
def test_an_unknown_type_is_refused(event_type: object) -> None:
    """A type that is neither current nor old, a newer one included, is a wire error at `type`."""
    document = {**example(CURRENT), "type": event_type}
    with pytest.raises(WireError) as refused:
        decode_log_event(orjson.dumps(document), STEPS)
    assert refused.value.place == "type"


def test_an_old_event_that_stays_invalid_is_refused_with_its_place() -> None:
    """Upcasting repairs nothing: the current model still decides."""
    with pytest.raises(WireError) as refused:
        decode_log_event(_stored(OLD, operations=[{"op": "observe", "record": "o 2"}]), STEPS)
    assert refused.value.place == "operations.0.record"


def test_no_published_version_needs_a_step_yet() -> None:
    """Version 1 is the first version, so a step here would be for a version nobody has."""
    assert UPCASTERS == {}


@given(
    fields=st.dictionaries(
        st.sampled_from(["operations", "turn", "role", "sequence"]),
        st.integers(-(2**63), 2**64 - 1) | st.lists(st.none() | st.text(max_size=4)),
    )
)
@hypothesis_example(fields={"turn": 2**64 - 1})
def test_an_old_event_with_any_fields_is_read_or_refused(fields: dict[str, object]) -> None:
    """Whatever stands in an old event, reading it ends in an event or a wire error."""
    with pytest.raises(WireError):
        decode_log_event(orjson.dumps({"type": OLDER, **fields}), STEPS)
