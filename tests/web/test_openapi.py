"""The OpenAPI document says what the server does: random requests by it find no failure."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from schemas.generate import FOLDER
from schemas.openapi import openapi_document
from tests.web.fake import FakeConversations, observe, run, served, serving, statement

EXAMPLES = 40
DOCUMENT = schemathesis.openapi.from_dict(openapi_document())
OPERATIONS = {each.ok().label: each.ok() for each in DOCUMENT.get_all_operations()}
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
KNOWN = {"tenant": "acme", "conversation": "c1", "record": "o1"}
"""What valid requests ask about; the others invent ids too."""
MODES = list(schemathesis.GenerationMode)


def conversation() -> FakeConversations:
    """The one that valid requests ask about."""
    said = FakeConversations()
    said.say(statement("u1", observe("o1"), observe("0", "o1")))
    return said


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """One server for all examples."""
    limits = {"requests_per_second": 1e6, "requests_burst": 1_000_000}
    with served(conversation(), **limits) as here:
        yield here


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("label", OPERATIONS)
def test_random_requests_find_no_failure(
    label: str, mode: schemathesis.GenerationMode, address: str
) -> None:
    """Valid or not, each is answered as the document says, and none with 500."""
    if not OPERATIONS[label].query and not OPERATIONS[label].body and not _path(label):
        return  # nothing can be varied

    is_valid = mode is schemathesis.GenerationMode.POSITIVE
    known = {name: id_ for name, id_ in KNOWN.items() if is_valid and f"{{{name}}}" in label}

    @seed(1)
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(OPERATIONS[label].as_strategy(generation_mode=mode, path_parameters=known))
    def ask(case: schemathesis.Case) -> None:
        if isinstance(case.body, dict):
            case.body["wait_ms"] = 0
        if case.query:
            case.query["wait_ms"] = 0
        response = case.call(base_url=address)
        assert response.status_code != 500
        case.validate_response(response, checks=CHECKS)

    ask()


def _path(label: str) -> bool:
    return "{" in label


def test_the_document_is_served_as_it_is_published() -> None:
    """What a client can fetch is the file in schemas/json."""

    async def main() -> object:
        async with serving(FakeConversations(), open_gate=False) as client:
            return (await client.get("/openapi.json"))[1]

    assert run(main()) == orjson.loads((FOLDER / "openapi.json").read_bytes())


def test_every_route_is_in_the_document() -> None:
    """Paths and methods are those that the server has, but for the document itself."""
    described = {
        (path, method.upper())
        for path, methods in openapi_document()["paths"].items()
        for method in methods
        if method != "parameters"
    }

    async def main() -> None:
        async with serving(FakeConversations()) as client:
            for path, method in described:
                filled = path.replace("{tenant}", "t").replace("{conversation}", "c")
                filled = filled.replace("{record}", "r")
                status, _, _ = await client.ask(method, filled, json={})
                expected = (403,) if method == "DELETE" else (200, 404, 400)  # the gate is open
                assert status in expected, (method, path, status)
                assert (await client.ask("PATCH", filled))[0] == 405

    run(main())
    assert len(described) == 10
