"""Finds the JSON object in what a model wrote: behind its thoughts, inside fences, amid prose.

Reading tolerates what stands around an answer, never what stands in it: an object that says one
thing twice, or two objects that could both be the answer, are no answer.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_THOUGHTS = re.compile(r"<(think|thinking)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHTS = re.compile(r"\A.*</(?:think|thinking)>", re.DOTALL | re.IGNORECASE)
"""Some servers cut the opening tag off; whatever comes before a closing one was thought."""
TRIES_MAX = 64
"""Places where an object may begin; each try reads on to the end at worst."""


class BadReply(ValueError):  # noqa: N818 - it says what is wrong
    """What a model wrote is no answer; `str(error)` says why, in words for the model."""


def find_object(text: str, key: str) -> dict[str, Any]:
    """The one JSON object with the key, wherever it stands in the text. Raises BadReply."""
    said = _END_OF_THOUGHTS.sub("", _THOUGHTS.sub("", text)).strip()
    if not said:
        raise BadReply("the answer is empty")
    found: list[dict[str, Any]] = []
    for read in _objects(said):
        if key in read and read not in found:
            found.append(read)
    if not found:
        raise BadReply(f"there is no JSON object with the field {key!r} in the answer")
    if len(found) > 1:
        raise BadReply(f"there are {len(found)} JSON objects with the field {key!r} in the answer")
    return found[0]


def _objects(text: str) -> list[dict[str, Any]]:
    """The outermost JSON objects in a text."""
    decoder = json.JSONDecoder(object_pairs_hook=_each_once)
    objects: list[dict[str, Any]] = []
    start = text.find("{")
    for _ in range(TRIES_MAX):
        if start < 0:
            break
        try:
            _, end = decoder.raw_decode(text, start)
            objects.append(orjson.loads(text[start:end].encode()))
        except (json.JSONDecodeError, UnicodeEncodeError, RecursionError):
            end = start + 1  # orjson's error is one of json's
        start = text.find("{", end)
    return objects


def _each_once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(fields)
    if len(read) < len(fields):
        raise BadReply("a field stands twice in one object")
    return read
