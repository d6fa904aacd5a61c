"""Every dialect against a scripted endpoint: how it is asked, found, and proved to be kept to."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from processor.interpreter.dialects import ORDER
from processor.interpreter.openai_client import OpenAIModel
from processor.interpreter.port import EndpointUnavailable, Reading
from processor.interpreter.request import Dialect, LimitField, Shape, UnfitEndpoint
from tests.interpreter.asking import WANTED, draft, model_at, read, with_model
from tests.interpreter.scripted_endpoint import (
    ALL_DIALECTS,
    ScriptedEndpoint,
    claims,
    dialect_of,
    operations,
)

OBSERVE = {"op": "observe", "record": "o1", "claim": "it rains", "premises": [], "formula": None}


@pytest.mark.parametrize("dialect", ORDER)
def test_each_dialect_brings_operations(dialect: Dialect) -> None:
    """The same reply is read out of wherever the dialect puts it."""
    with ScriptedEndpoint([operations(OBSERVE)]) as endpoint:
        reading = read(model_at(endpoint, dialects=(dialect,)))
    assert isinstance(reading, Reading)
    assert [operation.op for operation in reading.operations] == ["observe"]
    assert [dialect_of(body) for body in endpoint.asked] == [dialect.value]
    provenance = reading.provenance
    assert (provenance.interpreter, provenance.model) == ("openai", WANTED.model)
    assert (provenance.tokens_in, provenance.tokens_out, provenance.attempts) == (100, 20, 1)
    assert provenance.parameters["dialect"] == dialect.value
    (call,) = provenance.calls
    assert (call.answer, call.finish_reason) == (operations(OBSERVE).text, "stop")


@pytest.mark.parametrize("dialect", ORDER)
def test_each_dialect_brings_claims(dialect: Dialect) -> None:
    """A draft is read as claims with the records they rest on, and none is an answer too."""
    claim = {"text": "it rains", "records": ["o1"]}
    with ScriptedEndpoint([claims(claim), claims()]) as endpoint:
        found = read(model_at(endpoint, dialects=(dialect,)), draft("it rains"))
        nothing = read(model_at(endpoint, dialects=(dialect,)), draft("hello"))
    assert isinstance(found, Reading)
    assert isinstance(nothing, Reading)
    assert [each.associated() for each in found.claims or ()] == [("o1",)]
    assert nothing.claims == ()


def test_the_schema_is_sent_as_the_dialect_says() -> None:
    """The schema stands where the server looks for it, with a temperature of zero and a seed."""
    for dialect in ORDER:
        with ScriptedEndpoint() as endpoint:
            read(model_at(endpoint, dialects=(dialect,)))
        (body,) = endpoint.asked
        assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.0, 0, 2048)
        match dialect:
            case Dialect.JSON_SCHEMA:
                schema = body["response_format"]["json_schema"]["schema"]
            case Dialect.JSON_OBJECT:
                schema = body["response_format"]["schema"]
            case Dialect.TOOL:
                schema = body["tools"][0]["function"]["parameters"]
                assert body["tool_choice"]["function"]["name"] == "operations"
            case Dialect.TEXT:
                schema = orjson.loads(body["messages"][0]["content"].rpartition("\n")[2])
        assert list(schema["properties"]) == ["rationale", "operations"]


@pytest.mark.parametrize("unsupported", [200, 400, 422, 500])
@pytest.mark.parametrize("dialect", ORDER)
def test_the_only_dialect_that_a_server_takes_is_found(dialect: Dialect, unsupported: int) -> None:
    """Left to itself the client tries the dialects in their order, once for all utterances."""
    takes = frozenset({dialect.value})
    with ScriptedEndpoint(dialects=takes, unsupported=unsupported) as endpoint:

        async def twice(model: OpenAIModel) -> list[Shape]:
            return list(await asyncio.gather(model.shape(), model.shape()))

        found = with_model(model_at(endpoint, dialects=ORDER), twice)
    assert found == [WANTED._replace(dialect=dialect)] * 2
    assert len(endpoint.tests) == 2  # one that shows that it is kept to, one with the real schema


@pytest.mark.parametrize("dialect", ORDER)
def test_a_server_that_ignores_the_schema_is_refused(dialect: Dialect) -> None:
    """The self-test says so before any utterance is read."""
    with (
        ScriptedEndpoint(ignores_schema=ALL_DIALECTS) as endpoint,
        pytest.raises(UnfitEndpoint, match=f"{dialect.value}: the server ignores the schema"),
    ):
        read(model_at(endpoint, dialects=(dialect,)))
    assert endpoint.asked == []


@pytest.mark.parametrize("kept", ORDER)
def test_a_dialect_whose_schema_is_ignored_is_passed_over(kept: Dialect) -> None:
    """A server may take a setting and drop it silently; the first that it keeps to is used."""
    ignored = ALL_DIALECTS - {kept.value}
    with ScriptedEndpoint([operations(OBSERVE)], ignores_schema=ignored) as endpoint:
        reading = read(model_at(endpoint, dialects=ORDER))
    assert isinstance(reading, Reading)
    assert reading.provenance.parameters["dialect"] == kept


def test_a_server_without_any_dialect_is_refused_with_all_reasons() -> None:
    """Each dialect is named with what is wrong with it."""
    with ScriptedEndpoint(dialects=frozenset()) as endpoint, pytest.raises(UnfitEndpoint) as told:
        read(model_at(endpoint, dialects=ORDER))
    for dialect in ORDER:
        assert f"{dialect.value}: the server refuses it (HTTP 422 unsupported)" in str(told.value)


def test_parameters_that_a_server_does_not_take_are_left_out() -> None:
    """Temperature and seed are dropped, and the limit goes under its other name."""
    with ScriptedEndpoint(refuses=("temperature", "seed", "max_tokens")) as endpoint:
        reading = read(model_at(endpoint))
    assert isinstance(reading, Reading)
    (body,) = endpoint.asked
    assert "temperature" not in body
    assert "seed" not in body
    assert body["max_completion_tokens"] == WANTED.answer_tokens_max
    assert reading.provenance.parameters["limit_field"] == LimitField.MAX_COMPLETION_TOKENS


def test_an_endpoint_that_is_down_is_not_found_unfit() -> None:
    """What may pass is waited for: it is no finding about dialects."""
    with ScriptedEndpoint(key="another") as endpoint, pytest.raises(EndpointUnavailable) as told:
        read(model_at(endpoint, dialects=ORDER))
    assert str(told.value) == "HTTP 401 invalid_api_key"
