"""Authority policies: which roles may do what to which records.

A policy is open but for what it forbids. It stands in the log, in a setup or in the event from
which on it holds, so that a replay decides as the first run did.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from schemas.contract import Contract
from schemas.ids import NAME_PATTERN, RoleName

PROHIBITIONS_MAX = 64
ROLES_MAX = 64

Roles = Annotated[tuple[RoleName, ...], Field(min_length=1, max_length=ROLES_MAX)]
Kind = Literal["observation", "hypothesis", "evidence", "premise", "decision"]


class Act(StrEnum):
    """What an operation does to a record that is there already."""

    REVISE = "revise"
    UNDERMINE = "undermine"
    SUPPORT = "support"
    RESOLVE = "resolve"
    REBASE = "rebase"
    """Let it rest on another for good: subsume it, or resolve it on further premises."""
    RECLASSIFY = "reclassify"


class Prohibition(Contract):
    """These roles may not do these acts to records of these kinds, introduced in these roles.

    Null means any: any role, any kind, introduced in any role.
    """

    roles: Roles | None = None
    acts: Annotated[tuple[Act, ...], Field(min_length=1, max_length=len(Act))]
    kinds: Annotated[tuple[Kind, ...], Field(min_length=1, max_length=5)] | None = None
    introduced_by: Roles | None = None


class Policy(Contract):
    """What is forbidden, and who may decide (resolve by authority); `deciders` null is anybody.

    `version` names the policy for people; two policies are the same if all of them is.
    """

    version: Annotated[str, Field(pattern=NAME_PATTERN)]
    forbidden: Annotated[tuple[Prohibition, ...], Field(max_length=PROHIBITIONS_MAX)] = ()
    deciders: Annotated[tuple[RoleName, ...], Field(max_length=ROLES_MAX)] | None = None


DEFAULT_POLICY = Policy(
    version="default-1",
    forbidden=(
        Prohibition(
            roles=("user", "assistant"),
            acts=(Act.REVISE, Act.UNDERMINE, Act.REBASE),
            kinds=("observation", "evidence"),
            introduced_by=("tool", "system"),
        ),
    ),
)
"""Open, but what a tool or the system observed is not withdrawn by users and assistants."""
