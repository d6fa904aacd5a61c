"""Upcasting: old event versions are brought up to date on reading, one pure step at a time.

A step takes the fields of one version and returns the fields of the next; steps chain. A step is
total: it is called before anything was validated, so it must take any fields without raising and
leave what it does not recognise for the validation that follows. The bytes in the log are never
rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

Fields = dict[str, Any]
Upcasters = Mapping[str, tuple[str, Callable[[Fields], Fields]]]
"""From an old type to the next one and the step that leads there."""

UPCASTERS: Upcasters = {}
"""The steps of the published versions. Version 1 is the first, so there are none yet."""

_STEPS_MAX = 64


def upcast(stored: bytes, upcasters: Upcasters) -> bytes | None:
    """The same event in the newest version as bytes.

    None if it is no old version, or so malformed that a step's result cannot be written as JSON.
    Raises AssertionError if the steps form a loop.
    """
    try:
        fields = orjson.loads(stored)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
        return None
    if fields["type"] not in upcasters:
        return None
    for _ in range(_STEPS_MAX):
        step = upcasters.get(fields["type"])
        if step is None:
            return _written(fields)
        next_type, change = step
        fields = {**change(fields), "type": next_type}
    raise AssertionError("the upcasters form a loop")


def _written(fields: Fields) -> bytes | None:
    try:
        return orjson.dumps(fields)
    except orjson.JSONEncodeError:
        return None
