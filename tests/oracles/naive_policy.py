"""Authority in its most obvious form: look at every prohibition, word by word."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

DEFAULT: Json = {
    "forbidden": [
        {"roles": [person], "acts": [act], "kinds": [kind], "introduced_by": [source]}
        for person in ("user", "assistant")
        for act in ("revise", "undermine", "rebase")
        for kind in ("observation", "evidence")
        for source in ("tool", "system")
    ],
    "deciders": None,
}
"""Open, but a person or a model does not withdraw what a tool or the system saw."""


def may(policy: Json, role: str, act: str, kind: str, introduced_by: str) -> bool:
    """Whether no prohibition names all of this; a part that is left out names everything."""
    for prohibition in policy.get("forbidden") or []:
        named = [
            role in (prohibition.get("roles") or [role]),
            act in prohibition["acts"],
            kind in (prohibition.get("kinds") or [kind]),
            introduced_by in (prohibition.get("introduced_by") or [introduced_by]),
        ]
        if all(named):
            return False
    return True


def may_decide(policy: Json, role: str) -> bool:
    """Whether the role may resolve by authority: everybody may where nobody is named."""
    deciders = policy.get("deciders")
    return deciders is None or role in deciders
