"""Keys: what an atom gives a value to, written in one way, with the original kept in the atom."""

from __future__ import annotations

from typing import NamedTuple, final
from unicodedata import normalize


@final
class Key(NamedTuple):
    """An entity, one of its attributes, and the facet of it that is meant (empty: none)."""

    entity: str
    attribute: str
    facet: str = ""


def normalised(text: str) -> str:
    """The text in NFC, without differences of case and white space."""
    return " ".join(normalize("NFC", normalize("NFC", text).casefold()).split())


def key_of(entity: str, attribute: str, facet: str | None = None) -> Key:
    """The key of what was written."""
    return Key(normalised(entity), normalised(attribute), normalised(facet or ""))
