"""What it takes, for each tenant, that one value supersedes another.

It decides nothing by itself: it counts in the log event that brings it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from processor.engine.rules_version import RULES_V2
from schemas.evidence import Supersession
from schemas.log import LogEvent, OperationsAppended


@final
@dataclass(frozen=True)
class Supersessions:
    """The policies of the tenants; `others` is that of those without one."""

    others: Supersession = Supersession.SAME_KEY_SAME_SOURCE
    of_tenants: Mapping[str, Supersession] = field(default_factory=dict)

    def stamped(self, event: LogEvent) -> LogEvent:
        """The event with its tenant's policy, if it is one that a policy concerns."""
        policy = self.of_tenants.get(event.tenant_id, self.others)
        is_default = policy is Supersession.SAME_KEY_SAME_SOURCE
        if is_default or not isinstance(event, OperationsAppended):
            return event
        if event.rules_version < RULES_V2:
            return event
        return event.model_copy(update={"supersession": policy})


BY_DEFAULT = Supersessions()
