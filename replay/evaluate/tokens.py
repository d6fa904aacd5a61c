"""Tokens as cl100k counts them: the measure of the papers' tables."""

from __future__ import annotations

from functools import cache
from typing import Any

from replay.evaluate.extra import needed


def tokens(text: str) -> int:
    """How many tokens the text has. Raises ExtraMissing."""
    return len(_encoding().encode(text))


@cache
def _encoding() -> Any:
    return needed("bpe_openai").get_encoding("cl100k_base")
