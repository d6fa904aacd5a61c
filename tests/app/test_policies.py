"""The file of authority policies: who has which, and what is wrong with it in one line."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from processor.app.errors import SettingsError
from processor.app.policies import NO_POLICIES, read_policies
from schemas.policy import DEFAULT_POLICY, Policy

ACME = {"tenant": "acme", "policy": {"version": "acme-3", "deciders": ["lead"]}}
OTHERS = {"tenant": None, "policy": {"version": "open"}}


def write(folder: Path, *lines: object) -> Path:
    """A file of these lines."""
    path = folder / "policies.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    return path


def test_each_tenant_has_its_own_and_the_others_have_theirs(tmp_path: Path) -> None:
    """A line without a tenant is for all that have none; without such a line the default is."""
    policies = read_policies(write(tmp_path, ACME, OTHERS))
    assert policies.of_tenants == {"acme": Policy(version="acme-3", deciders=("lead",))}
    assert policies.others == Policy(version="open")
    assert read_policies(write(tmp_path, ACME)).others == DEFAULT_POLICY
    assert read_policies(None) is NO_POLICIES


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"tenant": "a/b", "policy": {"version": "v"}}, "tenant"),
        ({"tenant": "b"}, "policy"),
        ({"tenant": "b", "policy": {"version": "v", "forbidden": [{"acts": []}]}}, "acts"),
        ({"tenant": "b", "policy": {"version": "v", "allowed": []}}, "policy.allowed"),
        (ACME, "tenant: it has a policy already"),
    ],
)
def test_a_bad_line_is_named_with_its_field(tmp_path: Path, line: object, problem: str) -> None:
    """File, line number and field stand in the message."""
    path = write(tmp_path, ACME, line)
    with pytest.raises(SettingsError) as raised:
        read_policies(path)
    assert str(raised.value).startswith(f"{path}:2: ")
    assert problem in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The message begins with the path."""
    with pytest.raises(SettingsError, match=r"nothing\.jsonl: No such file"):
        read_policies(tmp_path / "nothing.jsonl")
