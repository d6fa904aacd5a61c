"""The benchmarks."""

from __future__ import annotations

from replay.evaluate.suites.chains import CHAINS
from replay.evaluate.suites.conversations import BEAM, LOCOMO, LONGMEMEVAL
from replay.evaluate.suites.dated import DYKNOW, TEMPLAMA
from replay.evaluate.suites.ingest_cost import INGEST_COST
from replay.evaluate.suites.latency import LATENCY
from replay.evaluate.suites.memab_fc import MEMAB_FC
from replay.evaluate.suites.noise import NOISE, PATH_RECALL
from replay.evaluate.suites.render_terms import RENDER_TERMS, REVERT_PAIRS
from replay.evaluate.suites.reviseqa import REVISEQA
from replay.evaluate.suites.scenarios import DELIBERATION, INCIDENT, MUDDY_CHILDREN
from replay.evaluate.suites.stale_premise import STALE_PREMISE
from replay.evaluate.suites.tiers import TIER_CLASSIFIERS
from replay.evaluate.suites.unpublished import ESR_BENCH, RECON

BENCHMARKS = (
    INCIDENT,
    MUDDY_CHILDREN,
    DELIBERATION,
    LATENCY,
    STALE_PREMISE,
    CHAINS,
    RECON,
    REVISEQA,
    MEMAB_FC,
    INGEST_COST,
    LOCOMO,
    LONGMEMEVAL,
    BEAM,
    TEMPLAMA,
    DYKNOW,
    ESR_BENCH,
    REVERT_PAIRS,
    RENDER_TERMS,
    NOISE,
    PATH_RECALL,
    TIER_CLASSIFIERS,
)
