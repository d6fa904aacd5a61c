"""The verdicts of one candidate tell a bounded number of ids of support together."""

from __future__ import annotations

import pytest

from processor.engine import verify
from schemas.derived import Outcome
from tests.benchmarks.conversations import log_of


def test_claims_beyond_the_bound_are_answered_without_their_support(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first claims have theirs, one has a part of it, and every outcome is as it would be."""
    state = log_of(60)[1].state
    grounded = [[record.id] for record in state.records.values() if record.grounded]
    whole = verify.verify_claims(state, grounded)
    assert all(verdict.support_complete for verdict in whole)
    monkeypatch.setattr(verify, "SUPPORT_MAX", 12)
    told = verify.verify_claims(state, grounded)
    assert {verdict.outcome for verdict in told} == {Outcome.GROUNDED}
    assert sum(len(verdict.support) for verdict in told) == 12
    for short, long in zip(told, whole, strict=True):
        assert short.support == long.support[: len(short.support)]
        assert short.support_complete == (short.support == long.support)
    assert not told[-1].support_complete
