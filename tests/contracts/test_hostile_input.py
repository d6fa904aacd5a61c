"""Bad input is a wire error that names its place; it is never another exception."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.contract import CLAIM_CHARS_MAX, OPERATIONS_MAX, Contract
from schemas.operations import Operation
from schemas.wire import WireError, canonical_bytes, decode_log_event, decode_utterance
from tests.contracts.examples import changed, example, without
from tests.strategies import LOG_EVENTS, UTTERANCES

UTTERANCE = "standfast.utterance.v1"
OPERATIONS = "standfast.operations.v1"

Decode = Callable[[bytes], Contract]
DECODERS = pytest.mark.parametrize("decode", [decode_utterance, decode_log_event])
HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["\x00", "op", "2026-03-01T00:00:00", "a" * 300, "observe", "' OR 1=1 --"]),
    st.lists(st.integers(-(2**63), 2**64 - 1), max_size=2),
    st.dictionaries(st.sampled_from(["op", "node", "record", "type", "x"]), st.text(max_size=3)),
)


def _refusal(decode: Decode, written: bytes) -> WireError | None:
    """The refusal, None if the bytes were accepted; any other exception is the test's failure."""
    refused = None
    try:
        decode(written)
    except WireError as error:
        refused = error
    assert refused is None or (refused.problem and str(refused).isprintable())
    assert len(str(refused)) < 25_000
    return refused


def _place(written: bytes, decode: Decode = decode_utterance) -> str:
    refused = _refusal(decode, written)
    assert refused is not None, "the bytes were accepted"
    return refused.place


@DECODERS
@pytest.mark.parametrize(
    "written",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="cut-off"),
        pytest.param(b"{}{}", id="two-documents"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'"text"', id="string"),
        pytest.param(b"\xff\xfe{}", id="not-utf-8"),
        pytest.param(b"\xef\xbb\xbf{}", id="byte-order-mark"),
        pytest.param(b"\x00", id="null-byte"),
        pytest.param(b'{"text": "\\ud800"}', id="lone-surrogate"),
        pytest.param(b'{"text": "\xed\xa0\x80"}', id="encoded-surrogate"),
        pytest.param(b'{"\\udfff": 1}', id="lone-surrogate-in-a-key"),
        pytest.param(b"[" * 100_000, id="deep-lists-cut-off"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="deep-lists"),
        pytest.param(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, id="deep-objects"),
        pytest.param(b'{"sequence": ' + b"9" * 100_000 + b"}", id="endless-number"),
        pytest.param(b'{"sequence": 1e999999}', id="infinite-number"),
        pytest.param(b'{"sequence": NaN}', id="not-a-number"),
        pytest.param(b'{"type": "standfast.operations.v1", "type": 1}', id="key-twice"),
        pytest.param(b'{"type": []}', id="type-is-a-list"),
        pytest.param(b'{"type": {}}', id="type-is-an-object"),
    ],
)
def test_what_is_no_document_is_refused(decode: Decode, written: bytes) -> None:
    """Bytes that are no JSON object of the right kind end in a wire error, quickly."""
    assert _refusal(decode, written) is not None


@DECODERS
@given(written=st.binary(max_size=200))
def test_random_bytes_are_refused(decode: Decode, written: bytes) -> None:
    """No random bytes are a contract, and none crash the reader."""
    assert _refusal(decode, written) is not None


def _places(document: object, here: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    places = [here] if here else []
    if isinstance(document, dict):
        for key, value in document.items():
            places += _places(value, (*here, key))
    if isinstance(document, list):
        for at, value in enumerate(document):
            places += _places(value, (*here, at))
    return places


@st.composite
def _mutated(draw: st.DrawFn, events: st.SearchStrategy[Contract]) -> bytes:
    """A valid document in which up to three places were replaced, removed or added to."""
    document: Any = orjson.loads(canonical_bytes(draw(events)))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(_places(document)))
        parent = document
        for part in path:
            parent = parent[part]
        match draw(st.sampled_from(["replace", "remove", "add", "repeat"])):
            case "replace":
                parent[last] = draw(HOSTILE)
            case "remove" if len(document) > 1:
                del parent[last]
            case "add" if isinstance(parent, dict):
                parent[draw(st.text(max_size=4))] = draw(HOSTILE)
            case _ if isinstance(parent, list):
                parent.append(copy.deepcopy(parent[last]))
    return orjson.dumps(document)


@given(written=_mutated(UTTERANCES))
def test_a_damaged_utterance_is_read_or_refused(written: bytes) -> None:
    """Whatever replaces parts of an utterance, reading it ends in an utterance or a wire error."""
    _refusal(decode_utterance, written)


@given(written=_mutated(LOG_EVENTS))
def test_a_damaged_log_event_is_read_or_refused(written: bytes) -> None:
    """Whatever replaces parts of a log event, reading it ends in an event or a wire error."""
    _refusal(decode_log_event, written)


@given(event=LOG_EVENTS, at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_flipped_byte_is_read_or_refused(event: Contract, at: int, byte: int) -> None:
    """One changed byte of a stored event gives another event or a wire error."""
    written = bytearray(canonical_bytes(event))
    written[at % len(written)] = byte
    _refusal(decode_log_event, bytes(written))


@given(event=LOG_EVENTS, at=st.integers(0, 10_000))
def test_a_cut_off_event_is_refused(event: Contract, at: int) -> None:
    """A stored event that lost its end is never read as a shorter one."""
    written = canonical_bytes(event)
    assert _refusal(decode_log_event, written[: at % len(written)]) is not None


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("operations.0.op", "nonsense", "operations.0.op"),
        ("operations.1.record", "o 2", "operations.1.record"),
        ("operations.1.premises.0", "o 1", "operations.1.premises.0"),
        ("operations.1.premises.1.record", "a 1", "operations.1.premises.1.record"),
        ("operations.1.premises.1.surprise", 1, "operations.1.premises.1.surprise"),
        ("operations.1.premises.1", 7, "operations.1.premises.1"),
        ("operations.1.premises", ["o1"] * 513, "operations.1.premises"),
        ("operations.1.formula", 7, "operations.1.formula"),
        ("operations.1.formula.node", "xor", "operations.1.formula.node"),
        (
            "operations.1.formula.consequent.parts.0.formula.name",
            "no name",
            "operations.1.formula.consequent.parts.0.formula.name",
        ),
        ("operations.1.claim", "x" * (CLAIM_CHARS_MAX + 1), "operations.1.claim"),
        ("operations.1.atoms.0.valid_from", "2026-02-30", "operations.1.atoms.0.valid_from"),
        ("operations.3.evidence.claim", "", "operations.3.evidence.claim"),
        ("operations.6.mode", "shouted", "operations.6.mode"),
        ("operations", [{"op": "question", "question": "q"}] * (OPERATIONS_MAX + 1), "operations"),
        ("operations", "observe", "operations"),
        ("metadata.n", 2**53 + 1, "metadata.n"),
        ("metadata.n", {"deep": 1}, "metadata.n"),
        ("audience", [], "audience"),
        ("tenant_id", "a/b", "tenant_id"),
        ("kind", "shout", "kind"),
        ("surprise", 1, "surprise"),
        ("claims", [], ""),
    ],
)
def test_a_refusal_names_the_place(place: str, value: object, named: str) -> None:
    """The place is the path in the document, without the names of branches that were tried."""
    assert _place(orjson.dumps(changed(UTTERANCE, place, value))) == named


@pytest.mark.parametrize(
    ("event_type", "place"),
    [
        (UTTERANCE, "conversation_id"),
        (UTTERANCE, "at"),
        (UTTERANCE, "operations.1.claim"),
        (UTTERANCE, "operations.1.premises.1.claim"),
        (UTTERANCE, "operations.1.formula.antecedent.name"),
        (UTTERANCE, "operations.2.op"),
        (OPERATIONS, "type"),
        (OPERATIONS, "turn"),
        (OPERATIONS, "utterance.digest"),
        (OPERATIONS, "operations.6.decision.record"),
    ],
)
def test_a_missing_field_is_named(event_type: str, place: str) -> None:
    """A field that must be there is named where it should stand."""
    decode = decode_utterance if event_type == UTTERANCE else decode_log_event
    assert _place(orjson.dumps(without(event_type, place)), decode) == place


def test_one_bad_operation_makes_the_line_bad() -> None:
    """The other operations of an utterance do not survive an invalid one."""
    document = example(UTTERANCE)
    document["operations"].append({"op": "observe"})
    assert _place(orjson.dumps(document)) == "operations.8.record"


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (b'{"metadata": {"x": NaN}}', "finite"),
        (b'{"metadata": {"x": Infinity}}', "finite"),
        (b'{"metadata": {"x": -1e999}}', "finite"),
        (b'{"metadata": {"x": 9007199254740993}}', "less than or equal"),
        (b'{"metadata": {"x": 18446744073709551616}}', "less than or equal"),
    ],
)
def test_a_number_that_would_not_survive_is_refused(written: bytes, problem: str) -> None:
    """Infinite, undefined and over-long numbers are refused, not rounded."""
    line = orjson.dumps({**example(UTTERANCE), "metadata": None})
    line = line.replace(b'"metadata":null', written.strip(b"{}").replace(b": {", b":{") + b"}")
    refused = _refusal(decode_utterance, line)
    assert refused is not None
    assert refused.place == "metadata.x"
    assert problem in refused.problem


def test_a_refusal_is_one_short_line() -> None:
    """A hostile key or tag of a megabyte, with line breaks, leaves a message of bounded length."""
    long = "x\n" * 500_000
    for document in (
        changed(UTTERANCE, long, 1),
        changed(UTTERANCE, "operations.0.op", long),
        changed(OPERATIONS, "type", long),
    ):
        decode = decode_log_event if "type" in document else decode_utterance
        assert _refusal(decode, orjson.dumps(document)) is not None


def test_the_operations_are_the_eight_of_the_taxonomy() -> None:
    """The examples hold each of the eight operations, so the tables above reach them all."""
    kinds = {operation["op"] for operation in example(UTTERANCE)["operations"]}
    union, *_ = get_args(Operation)
    assert len(kinds) == len(get_args(union)) == 8


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (b'{"speaker": "a", "speaker": "b"}', "speaker"),
        (b'{"text": "", "te\\u0078t": ""}', "text"),
        (b'{"metadata": {"n": 1, "n": 1}}', "n"),
        (
            b'{"operations": [{"op": "observe", "op": "observe", "record": "o", "claim": "c"}]}',
            "op",
        ),
    ],
)
def test_a_name_that_stands_twice_is_refused(written: bytes, name: str) -> None:
    """Nobody can tell which of the two was meant, at any depth and in any spelling."""
    rest = b'{"conversation_id": "c", "utterance_id": "u", "at": "2026-03-01T02:31:00Z", ' + (
        b"" if b"speaker" in written else b'"speaker": "a", '
    )
    with pytest.raises(WireError, match="twice") as refused:
        decode_utterance(rest + written[1:])
    assert refused.value.place == name
