"""Upcasting: old event versions are brought up to date on reading, one pure step at a time.

A step takes the fields of one version and returns the fields of the next; steps chain. The bytes in
the log are never rewritten.
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
    """The same event in the newest version as bytes, or None if it is not an old version at all."""
    try:
        fields = orjson.loads(stored)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict) or fields.get("type") not in upcasters:
        return None
    for _ in range(_STEPS_MAX):
        step = upcasters.get(fields["type"])
        if step is None:
            return orjson.dumps(fields)
        next_type, change = step
        fields = {**change(fields), "type": next_type}
    raise AssertionError("the upcasters form a loop")
