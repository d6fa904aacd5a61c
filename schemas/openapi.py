"""The OpenAPI 3.1 document of what a worker serves, built from the contracts in `schemas.http`."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from schemas.asyncapi import CONTRACTS_VERSION, JsonObject
from schemas.contract import Contract
from schemas.http import (
    PROBLEM_TYPE,
    AffectedQuery,
    AlertsAnswer,
    AlertsQuery,
    CheckAnswer,
    CheckRequest,
    ContextQuery,
    ErasedAnswer,
    Liveness,
    MemoryQuery,
    ProblemDetails,
    Readiness,
    ViewQuery,
)
from schemas.ids import NAME_PATTERN, RECORD_PATTERN, TENANT_PATTERN
from schemas.plain import say_it_in_full

OPENAPI_VERSION = "3.1.0"
_REFERENCE = "#/components/schemas/{model}"
_CONVERSATION = "/v1/tenants/{tenant}/conversations/{conversation}"
_PROBLEMS = {
    "400": "A field, a parameter or the request as a whole is not valid.",
    "401": "The token is missing, wrong or expired.",
    "403": "The token does not allow this.",
    "404": "There is no such conversation, turn or record; or it is another tenant's.",
    "408": "The body did not come in time.",
    "413": "The body is too large.",
    "429": "Too many requests, of the tenant or without a valid token from there; see Retry-After.",
    "500": "The request failed.",
    "503": "A rebalance, a recovery, or too many requests; Retry-After says when to come again.",
}
_ERASE_PROBLEMS = {
    **_PROBLEMS,
    "409": "There is no key file, so nothing that was said can be erased.",
    "503": f"{_PROBLEMS['503'].partition(';')[0]}, or the keys are away; ask again.",
}
_CHECK_PROBLEMS = {
    **_PROBLEMS,
    "409": "The candidate_id was used before with other content.",
    "415": "The body is not application/json.",
}


def openapi_document() -> JsonObject:
    """The whole document, with keys in a fixed order."""
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "Standfast gate",
            "version": CONTRACTS_VERSION,
            "summary": "Checks drafts, shows conversations as of any turn, and erases them.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": {
            _CONVERSATION: {"parameters": _conversation(), "delete": _erase()},
            f"{_CONVERSATION}/check": {"parameters": _conversation(), "post": _check()},
            **{
                f"{_CONVERSATION}{path}": {
                    "parameters": [*_conversation(), *more],
                    "get": _view(name, summary, query),
                }
                for path, name, summary, query, more in _VIEWS
            },
            f"{_CONVERSATION}/alerts": {"parameters": _conversation(), "get": _alerts()},
            "/livez": {"get": _health("livez", "Whether the worker's loop runs.", Liveness)},
            "/readyz": {"get": _health("readyz", "Whether it does its work.", Readiness)},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _path(name: str, pattern: str) -> JsonObject:
    schema: JsonObject = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "path", "required": True, "schema": schema}


_VIEWS: tuple[tuple[str, str, str, type[ViewQuery], tuple[JsonObject, ...]], ...] = (
    ("/state", "state", "The dependency map.", ViewQuery, ()),
    (
        "/records/{record}",
        "record",
        "Whether a record is grounded, what it rests on, what happened to it.",
        ViewQuery,
        (_path("record", RECORD_PATTERN),),
    ),
    ("/affected", "affected", "What would lose support.", AffectedQuery, ()),
    ("/context", "context", "The state in words.", ContextQuery, ()),
    ("/memory", "memory", "Which value is in force, or the evidence in words.", MemoryQuery, ()),
)


def _conversation() -> list[Any]:
    return [_path("tenant", TENANT_PATTERN), _path("conversation", NAME_PATTERN)]


def _check() -> JsonObject:
    return {
        "operationId": "check",
        "summary": "Check a draft against the conversation.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _refer(CheckRequest)}},
        },
        "responses": {
            "200": _json("The verdicts, or `pending`.", _refer(CheckAnswer)),
            **_problems(_CHECK_PROBLEMS),
        },
    }


def _erase() -> JsonObject:
    told = (
        "It is erased: its keys are destroyed. What topics hold in the clear goes with their "
        "retention, what an archive holds once that follows them. Asked again, the answer is the "
        "same, and what was cut short is completed."
    )
    return {
        "operationId": "erase",
        "summary": "Erase the conversation, and close its id for ever.",
        "responses": {"200": _json(told, _refer(ErasedAnswer)), **_problems(_ERASE_PROBLEMS)},
    }


def _view(name: str, summary: str, query: type[ViewQuery]) -> JsonObject:
    return {
        "operationId": name,
        "summary": summary,
        "parameters": _query(query),
        "responses": {
            "200": _json("What the command prints with --json.", {"type": "object"}),
            **_problems(_PROBLEMS),
        },
    }


def _alerts() -> JsonObject:
    answer = _json("The alerts behind a place in the log.", _refer(AlertsAnswer))
    return {
        "operationId": "alerts",
        "summary": "Decisions and claims that lost their ground, in the order of the log.",
        "parameters": _query(AlertsQuery),
        "responses": {"200": answer, **_problems(_PROBLEMS)},
    }


def _health(name: str, summary: str, model: type[Contract]) -> JsonObject:
    return {
        "operationId": name,
        "summary": summary,
        "security": [],
        "responses": {
            "200": _json("It is well.", _refer(model)),
            "503": _json("It is not, and what is amiss.", _refer(model)),
        },
    }


def _query(model: type[Contract]) -> list[Any]:
    """The fields of a query model as parameters; null is a parameter that is not given."""
    schema = model.model_json_schema()
    required = schema.get("required", [])
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "schema": _without_null(field),
        }
        for name, field in schema["properties"].items()
    ]


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    told = {name: part for name, part in field.items() if name not in ("title", "anyOf")}
    for branch in field.get("anyOf", ()):
        if branch != {"type": "null"}:
            told |= branch
    if told.get("default", "") is None:
        del told["default"]
    return told


def _json(description: str, schema: JsonObject) -> JsonObject:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _problems(told: dict[str, str]) -> JsonObject:
    content: JsonObject = {PROBLEM_TYPE: {"schema": _refer(ProblemDetails)}}
    return {
        status: {"description": description, "content": content}
        for status, description in told.items()
    }


def _refer(model: type[Contract]) -> JsonObject:
    return {"$ref": _REFERENCE.format(model=model.__name__)}


def _schemas() -> JsonObject:
    """Requests as they are read, answers as they are written."""
    _, schema = models_json_schema(
        [
            (CheckRequest, "validation"),
            (CheckAnswer, "serialization"),
            (AlertsAnswer, "serialization"),
            (ErasedAnswer, "serialization"),
            (ProblemDetails, "serialization"),
            (Liveness, "serialization"),
            (Readiness, "serialization"),
        ],
        ref_template=_REFERENCE,
    )
    say_it_in_full(schema)
    found: JsonObject = schema["$defs"]
    return found
