"""Versions of the rules, so that an old log keeps folding to its own digests.

Every log event names the version it was appended under. A change of behaviour gets a new number and
a branch at the one place it concerns; the old branch stays.
"""

from __future__ import annotations

RULES_V1 = 1
"""The first published rules."""

RULES_V2 = 2
"""What evidence atoms imply for the records that carry them is applied in the same turn."""

CURRENT_RULES = RULES_V2
KNOWN_RULES = (RULES_V1, RULES_V2)
