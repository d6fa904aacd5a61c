"""The benchmarks."""

from __future__ import annotations

from replay.evaluate.suites.chains import CHAINS
from replay.evaluate.suites.latency import LATENCY
from replay.evaluate.suites.memab_fc import MEMAB_FC
from replay.evaluate.suites.reviseqa import REVISEQA
from replay.evaluate.suites.scenarios import DELIBERATION, INCIDENT, MUDDY_CHILDREN
from replay.evaluate.suites.stale_premise import STALE_PREMISE

BENCHMARKS = (
    INCIDENT,
    MUDDY_CHILDREN,
    DELIBERATION,
    LATENCY,
    CHAINS,
    REVISEQA,
    STALE_PREMISE,
    MEMAB_FC,
)
