"""A worker as an earlier version of the program was: `python -m tests.procedures.older_worker`.

Its stores have the format before this one's. With OLDER_RULES it also knows the rules up to those
alone: events of newer ones stop its partitions.
"""

from __future__ import annotations

import os
import sys

from processor.engine import rules_version

_RULES = int(os.environ.get("OLDER_RULES", rules_version.CURRENT_RULES))
rules_version.CURRENT_RULES = _RULES  # before anybody else takes them
rules_version.KNOWN_RULES = tuple(range(1, _RULES + 1))  # type: ignore[assignment]

from replay import store_file  # noqa: E402 - after the rules

store_file.STORE_FORMAT -= 1  # type: ignore[misc]

from processor.cli.worker import worker  # noqa: E402 - after both

if __name__ == "__main__":
    sys.exit(worker())
