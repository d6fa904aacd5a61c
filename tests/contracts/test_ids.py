"""Which identifiers are accepted, and that nothing else can pass for one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from pydantic import ConfigDict, TypeAdapter, ValidationError

from schemas.ids import ConversationId, RecordId, TenantId, conversation_key
from schemas.topics import KEY_PATTERN
from tests.strategies import NAMES, TENANT_IDS

STRICT = ConfigDict(strict=True)
TENANT: TypeAdapter[str] = TypeAdapter(TenantId, config=STRICT)
NAME: TypeAdapter[str] = TypeAdapter(ConversationId, config=STRICT)
RECORD: TypeAdapter[str] = TypeAdapter(RecordId, config=STRICT)

#    id                tenant  name   record
IDS = [
    ("acme", True, True, True),
    ("A-1", True, True, True),
    ("7", True, True, True),
    ("-", True, False, False),
    ("inc.7", False, True, True),
    ("a_b:c@d-e", False, True, True),
    ("o8'", False, False, True),
    ("team/o8", False, False, True),
    ("_a", False, False, False),
    (".hidden", False, False, False),
    ("../etc", False, False, False),
    ("'a", False, False, False),
    ("", False, False, False),
    ("a b", False, False, False),
    ("a\n", False, False, False),
    ("a\x00", False, False, False),
    ("é", False, False, False),
    ("\uff41", False, False, False),
    ("a;drop", False, False, False),
    ("a" * 64, True, True, True),
    ("a" * 65, False, True, True),
    ("a" * 128, False, True, True),
    ("a" * 129, False, False, False),
]


def _accepts(kind: TypeAdapter[str], value: object) -> bool:
    try:
        kind.validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(("written", "tenant", "name", "record"), IDS)
def test_ids(written: str, tenant: bool, name: bool, record: bool) -> None:
    """The table says which kinds of id a string may be."""
    accepted = (_accepts(TENANT, written), _accepts(NAME, written), _accepts(RECORD, written))
    assert accepted == (tenant, name, record)


@pytest.mark.parametrize("value", [1, None, True, b"a", ["a"]])
def test_only_strings_are_ids(value: object) -> None:
    """No other type is turned into an id."""
    assert not any(_accepts(kind, value) for kind in (TENANT, NAME, RECORD))


@given(tenant=TENANT_IDS, conversation=NAMES)
def test_a_key_names_one_conversation_of_one_tenant(tenant: str, conversation: str) -> None:
    """A key fits the topics' pattern and splits back into its two parts in one way."""
    key = conversation_key(tenant, conversation)
    assert re.fullmatch(KEY_PATTERN, key)
    assert key.split("/") == [tenant, conversation]
