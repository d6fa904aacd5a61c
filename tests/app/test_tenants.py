"""The file of what holds for tenants: who has which, and what is wrong with it in one line."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from processor.app.errors import SettingsError
from processor.app.tenants import PLAIN, Terms, read_tenants
from processor.engine.rules_version import RULES_V1
from schemas.evidence import MemoryClass, Supersession
from schemas.log import LogEvent, OperationsAppended
from schemas.policy import DEFAULT_POLICY, Policy
from tests.engine.given import Given, observe

ACME = {"tenant": "acme", "policy": {"version": "acme-3", "deciders": ["lead"]}}
DEFAULT = {"tenant": "default", "supersession": "explicit"}
OTHERS = {"tenant": None, "policy": {"version": "open"}, "supersession": "off"}


def write(folder: Path, *lines: object) -> Path:
    """A file of these lines."""
    path = folder / "tenants.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    return path


def test_each_tenant_has_its_own_and_the_others_have_theirs(tmp_path: Path) -> None:
    """A line without a tenant is for all that have none; what no line says is the default."""
    tenants = read_tenants(write(tmp_path, ACME, DEFAULT, OTHERS))
    acme, default = tenants.terms["acme"], tenants.terms["default"]
    assert acme.policy == Policy(version="acme-3", deciders=("lead",))
    assert acme.supersession is Supersession.SAME_KEY_SAME_SOURCE
    assert (default.policy, default.supersession) == (DEFAULT_POLICY, Supersession.EXPLICIT)
    assert tenants.others.policy == Policy(version="open")
    assert tenants.others.supersession is Supersession.OFF
    assert read_tenants(write(tmp_path, ACME)).others == Terms()
    assert read_tenants(None) is PLAIN


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({}, MemoryClass.LEDGER),
        ({"memory": "graphrag_lite"}, MemoryClass.GRAPHRAG_LITE),
        ({"memory": "auto", "queries": {"snapshot": 3, "status": 0.5}}, MemoryClass.COARSE_DISCARD),
        ({"memory": "auto", "queries": {"snapshot": 9, "as_of": 1}}, MemoryClass.COARSE_RETAIN),
        ({"memory": "auto", "queries": {"change_type": 1}}, MemoryClass.LEDGER),
        ({"memory": "latest_only", "queries": {"change_type": 1}}, MemoryClass.LATEST_ONLY),
    ],
)
def test_the_memory_class_is_named_or_the_least_that_the_queries_need(
    tmp_path: Path, line: dict[str, object], expected: MemoryClass
) -> None:
    """`auto` goes by the weights of the queries; tenants without a line have that of the others."""
    tenants = read_tenants(write(tmp_path, {"tenant": "acme", **line}))
    assert tenants.memory_class("acme") is expected
    assert tenants.memory_class("other") is MemoryClass.LEDGER
    others = read_tenants(write(tmp_path, {"tenant": None, **line}))
    assert others.memory_class("other") is expected


def test_the_memory_class_decides_nothing_that_is_logged(tmp_path: Path) -> None:
    """The same words give the same digest, however much of them is asked for."""
    digests = []
    for memory in ("ledger", "coarse_discard", "direct_context"):
        tenants = read_tenants(write(tmp_path, {"tenant": "default", "memory": memory}))
        given = Given(tenants=tenants)
        given.say(observe("o1", atoms=[{"entity": "a", "attribute": "b", "value": "c"}]))
        digests.append(given.conversation.digest)
    assert len(set(digests)) == 1


def supersession(event: LogEvent) -> Supersession | None:
    """What a statement brings."""
    assert isinstance(event, OperationsAppended)
    return event.supersession


def test_every_statement_of_a_tenant_brings_what_differs_from_the_default(tmp_path: Path) -> None:
    """Statements do, and under rules that know of it; other events and the default bring none."""
    tenants = read_tenants(write(tmp_path, DEFAULT))
    given = Given(tenants=tenants)
    assert supersession(given.logged(operations=[])) is Supersession.EXPLICIT
    assert supersession(given.logged(operations=[])) is Supersession.EXPLICIT
    assert not hasattr(given.logged(kind="candidate", claims=[]), "supersession")
    old = Given(tenants=tenants, rules_version=RULES_V1)
    assert supersession(old.logged(operations=[])) is None
    plain = Given(tenants=read_tenants(write(tmp_path, ACME)))
    assert supersession(plain.logged(operations=[])) is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"tenant": "a/b", "policy": {"version": "v"}}, "tenant"),
        ({"policy": {"version": "v"}}, "tenant"),
        ({"tenant": "b", "supersession": "always"}, "supersession"),
        ({"tenant": "b", "policy": {"version": "v", "forbidden": [{"acts": []}]}}, "acts"),
        ({"tenant": "b", "policy": {"version": "v", "allowed": []}}, "policy.allowed"),
        ({"tenant": "b", "memory": "all"}, "memory"),
        ({"tenant": "b", "memory": "auto"}, "queries: memory auto goes by them"),
        ({"tenant": "b", "memory": "auto", "queries": {"snapshot": 0}}, "no query class has"),
        ({"tenant": "b", "queries": {"snapshot": -1}}, "queries.snapshot"),
        ({"tenant": "b", "queries": {"past": 1}}, "queries.past"),
        (ACME, "tenant: it has a line already"),
    ],
)
def test_a_bad_line_is_named_with_its_field(tmp_path: Path, line: object, problem: str) -> None:
    """File, line number and field stand in the message."""
    path = write(tmp_path, ACME, line)
    with pytest.raises(SettingsError) as raised:
        read_tenants(path)
    assert str(raised.value).startswith(f"{path}:2: ")
    assert problem in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The message begins with the path."""
    with pytest.raises(SettingsError, match=r"nothing\.jsonl: No such file"):
        read_tenants(tmp_path / "nothing.jsonl")
