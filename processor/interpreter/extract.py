"""Finds the JSON object in what a model wrote: behind its thoughts, inside fences, amid prose.

Reading tolerates what stands around an answer, never what stands in it: an object that says one
thing twice, or two objects that could both be the answer, are no answer. Nor is one that stands
inside another which begins as an answer and breaks off: it may be a part, or a quotation.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
from pydantic_core import from_json

_THOUGHTS = re.compile(r"<(think|thinking)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHTS = re.compile(r"\A.*</(?:think|thinking)>", re.DOTALL | re.IGNORECASE)
"""Some servers cut the opening tag off; whatever comes before a closing one was thought."""
RATIONALE = "rationale"
"""The field with which an answer is to begin, before the one that matters."""
TRIES_MAX = 64
"""Places where an object may begin; each try reads on to the end at worst."""


class BadReply(ValueError):  # noqa: N818 - it says what is wrong
    """What a model wrote is no answer; `str(error)` says why, in words for the model."""


def find_object(text: str, key: str) -> dict[str, Any]:
    """The one JSON object with the key, wherever it stands in the text. Raises BadReply."""
    said = _without_thoughts(text).strip()
    if not said:
        raise BadReply("the answer is empty")
    found: list[dict[str, Any]] = []
    for read in _objects(said, key):
        if key in read and read not in found:
            found.append(read)
    if not found:
        raise BadReply(f"there is no JSON object with the field {key!r} in the answer")
    if len(found) > 1:
        raise BadReply(f"there are {len(found)} JSON objects with the field {key!r} in the answer")
    return found[0]


def _without_thoughts(text: str) -> str:
    """What a model decided. Of JSON alone that is all: what looks like a tag is in a string."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return _END_OF_THOUGHTS.sub("", _THOUGHTS.sub("", text))
    return text


def _objects(text: str, key: str) -> list[dict[str, Any]]:
    """The outermost JSON objects in a text; none if one begins as the answer and is broken."""
    decoder = json.JSONDecoder(object_pairs_hook=_each_once)
    begins = re.compile(rf'\{{\s*"({RATIONALE}|{key})"\s*:')
    objects: list[dict[str, Any]] = []
    start = text.find("{")
    for _ in range(TRIES_MAX):
        if start < 0:
            break
        end = start + 1
        try:
            _, end = decoder.raw_decode(text, start)
            written = text[start:end].encode()
            from_json(written)  # so it nests no deeper than what contracts are read from
            objects.append(orjson.loads(written))
        except BadReply:
            raise
        except (ValueError, RecursionError):  # also what nests too deep, and endless numbers
            if begins.match(text, start):
                return []
        start = text.find("{", end)
    return objects


def _each_once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(fields)
    if len(read) < len(fields):
        raise BadReply("a field stands twice in one object")
    return read
