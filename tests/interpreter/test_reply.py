"""Replies: the schema they are asked for by, and how they are read back into contract models."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from processor.interpreter.extract import BadReply, find_object
from processor.interpreter.reply import read_candidate, read_statement
from processor.interpreter.reply_schema import (
    OPERATIONS_MAX,
    candidate_schema,
    statement_schema,
)
from schemas.contract import REFERENCES_MAX
from schemas.operations import Operation

INLINE = {"record": "x1", "claim": "it is wet", "premises": ["o2"], "formula": "a & b"}
EACH: list[dict[str, Any]] = [
    {
        "op": "observe",
        "record": "o1",
        "claim": "it rains",
        "premises": ["o2", INLINE],
        "formula": None,
        "atoms": [
            {
                "entity": "street",
                "attribute": "state",
                "value": "wet",
                "polarity": True,
                "valid_from": "2026-03-01",
                "valid_to": None,
                "facet": None,
                "relation": "supersedes",
                "of": ["o7"],
            }
        ],
    },
    {
        "op": "hypothesize",
        "record": "h1",
        "claim": "a cloud",
        "premises": [],
        "explains": ["o1"],
        "formula": "cloud",
    },
    {"op": "support", "target": "h1", "evidence": INLINE, "specific": False},
    {"op": "undermine", "target": "h1", "evidence": "o3", "contrast": True},
    {"op": "revise", "target": "h1", "by": INLINE, "negates": False},
    {
        "op": "expand_awareness",
        "proposition": "p_dew",
        "agents": None,
        "record": None,
        "claim": None,
        "reclassifies": None,
    },
    {
        "op": "resolve",
        "target": "h1",
        "mode": "consensual",
        "subsumes": [],
        "premises": [],
        "answers": [],
        "decision": INLINE,
        "dissent": [{"agent": "bob", "reason": "no"}],
    },
    {"op": "question", "question": "q1", "text": "why?", "about": []},
]
DIGESTIBLE = {"type", "properties", "required", "additionalProperties", "items", "maxItems"}
DIGESTIBLE |= {"anyOf", "enum"}


def reply(*operations: object) -> str:
    """A reply as a model writes it."""
    return orjson.dumps({"rationale": "because", "operations": operations}).decode()


def keywords(schema: Any) -> set[str]:
    """Every keyword that a schema uses."""
    if isinstance(schema, list):
        return set().union(*map(keywords, schema))
    if not isinstance(schema, dict):
        return set()
    inner = [each for name, each in schema.items() if name not in ("properties", "enum")]
    inner += schema.get("properties", {}).values()
    return set(schema).union(*map(keywords, inner))


def test_the_schema_says_only_what_every_server_digests() -> None:
    """No reference, default, pattern, length or discriminator, and every field is required."""
    for schema in (statement_schema(), candidate_schema()):
        assert keywords(schema) <= DIGESTIBLE
        assert next(iter(schema["properties"])) == "rationale"


def test_the_schema_has_every_operation_and_nobody_elses_words() -> None:
    """All eight kinds are there, and no field says who speaks."""
    written = orjson.dumps(statement_schema()).decode()
    union, *_ = get_args(Operation)
    for model in get_args(union):
        (op,) = get_args(model.model_fields["op"].annotation)
        assert f'"enum":["{op}"]' in written
    assert '"speaker"' not in written


@pytest.mark.parametrize("operation", EACH, ids=[each["op"] for each in EACH])
def test_what_the_schema_allows_is_read(operation: dict[str, Any]) -> None:
    """A full operation of each kind is valid by the schema and by the contract."""
    text = reply(operation)
    Draft202012Validator(statement_schema()).validate(orjson.loads(text))
    read = read_statement(text, "ann")
    assert [each.op for each in read.operations] == [operation["op"]]
    assert read.rejections == ()


def test_formulas_are_read_as_trees() -> None:
    """The log holds trees; a formula that is none is refused with the place in it."""
    good = {"op": "hypothesize", "record": "h1", "claim": "c", "formula": "a -> b"}
    bad = {**good, "record": "h2", "formula": "a ->"}
    read = read_statement(reply(good, bad), "ann")
    assert read.operations[0].formula.node == "implies"  # type: ignore[union-attr]
    assert [each.reason for each in read.rejections] == [
        "formula: at character 4: expected a formula"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "<think>{}</think>{}".replace("{}", "{{}}", 1),
        "let me see</think>\n{}",
        "Here you are:\n```json\n{}\n```\nAnything else?",
        "```\n{}\n```",
        "{{not json}} {}",
        "As asked: {} {}",
    ],
)
def test_an_answer_is_found_wherever_it_stands(text: str) -> None:
    """Behind thoughts, in fences, amid prose, after what only looks like one, and said twice."""
    answer = reply(EACH[4])
    whole = text.replace("{{", "\x00").replace("{}", answer).replace("\x00", "{")
    assert find_object(whole, "operations") == orjson.loads(answer)


@pytest.mark.parametrize("said", ["<think>", "</think>", "```json {} ```", '{"operations": []}'])
def test_what_stands_in_the_strings_of_an_answer_is_theirs(said: str) -> None:
    """Tags, fences and objects that somebody spoke of are neither thoughts nor answers."""
    answer = reply({"op": "observe", "record": "o1", "claim": said})
    assert find_object(answer, "operations") == orjson.loads(answer)


def test_an_answer_in_thoughts_is_no_answer() -> None:
    """What a model considered is not what it decided; nor is it if the thought does not end."""
    for text in (f"<think>{reply()}</think>", f"<think>{reply()}", f"<Thinking>{reply()}"):
        with pytest.raises(BadReply, match="empty"):
            find_object(text, "operations")


@given(st.text(alphabet='{}[]":,\\ operations01tfn<think>/`\n', max_size=200))
def test_no_text_crashes_the_search(text: str) -> None:
    """Whatever is written, there is one answer or a reason."""
    with suppress(BadReply):
        read_statement(text, "ann")
    with suppress(BadReply):
        read_candidate(text)


def test_an_answer_of_too_many_parts_is_none() -> None:
    """Lists are bounded when they are asked for, and when they are read."""
    assert statement_schema()["properties"]["operations"]["maxItems"] == OPERATIONS_MAX
    with pytest.raises(BadReply, match="at most 256 are read"):
        read_statement(reply(*[EACH[7]] * 300), "ann")
    many = {"claims": [{"text": "x"}] * (REFERENCES_MAX + 1)}
    with pytest.raises(BadReply, match="at most 512 are read"):
        read_candidate(orjson.dumps(many).decode())


@pytest.mark.parametrize("records", [["no id!"], ["o1", 7], "o1", ["o1"] * 65, {"o1": 1}])
def test_a_claim_that_cites_no_record_properly_rests_on_none(records: object) -> None:
    """It is kept, and is then checked as what rests on nothing: never dropped, never grounded."""
    claims = read_candidate(orjson.dumps({"claims": [{"text": "x", "records": records}]}).decode())
    assert [(claim.text, claim.associated()) for claim in claims] == [("x", ())]


@pytest.mark.parametrize("claim", [{}, {"text": ""}, {"records": ["o1"]}, "x", None, {"text": 1}])
def test_a_claim_without_words_is_no_claim(claim: object) -> None:
    """The whole reply is then unreadable, so that no claim goes unchecked."""
    with pytest.raises(BadReply):
        read_candidate(orjson.dumps({"claims": [{"text": "x", "records": []}, claim]}).decode())
