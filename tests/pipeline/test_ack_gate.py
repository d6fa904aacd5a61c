"""The acknowledgement gate, alone and in front of our consumer, which Faust's own would not do."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from typing import Any

import pytest
from faust.transport import consumer as faust
from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st
from intervaltree import IntervalTree

from processor.app.ack_gate import AckGate
from processor.app.faust_consumer import Consumer

ONE = TP("utterances", 0)


@given(st.lists(st.integers(1, 4), max_size=30), st.randoms(use_true_random=False))
def test_messages_are_released_once_and_in_order(gaps: list[int], chance: random.Random) -> None:
    """Whatever the order in which they finish, what is released is the finished prefix."""
    gate: AckGate = AckGate()
    offsets = [sum(gaps[: place + 1]) for place in range(len(gaps))]
    for offset in offsets:
        assert gate.take(offset, 0.0)
    released: list[int] = []
    finished: set[int] = set()
    for offset in chance.sample(offsets, len(offsets)):
        finished.add(offset)
        released += gate.finish(offset)
        unfinished = [each for each in offsets if each not in finished]
        assert released == [each for each in offsets if not unfinished or each < unfinished[0]]
        assert len(gate) == len(offsets) - len(released)
        assert gate.unfinished() == len(unfinished)
    assert released == offsets
    assert len(gate) == 0


def test_a_message_that_comes_again_is_not_taken_twice() -> None:
    """After a seek the broker delivers from the last commit on: what is in hand stays as it is."""
    gate: AckGate = AckGate()
    assert gate.take(3, 0.0)
    assert gate.take(4, 0.0)
    assert not gate.take(3, 0.0)
    assert gate.finish(3) == [3]
    assert gate.finish(4) == [4]


def test_the_oldest_in_hand_has_an_age() -> None:
    """What holds the others back shows; when it is finished, the next one does."""
    gate: AckGate = AckGate()
    assert gate.oldest_age_s(9.0) == 0.0
    gate.take(1, 10.0)
    gate.take(2, 12.0)
    assert gate.oldest_age_s(15.0) == 5.0
    gate.finish(1)
    assert gate.oldest_age_s(15.0) == 3.0


class _Faust:
    """The part of Faust's consumer that turns acknowledgements into an offset to commit."""

    _new_offset = faust.Consumer._new_offset
    _should_commit = faust.Consumer._should_commit
    _add_gap = faust.Consumer._add_gap

    def __init__(self, committed: int | None) -> None:
        self._committed_offset: dict[TP, int | None] = {ONE: committed}
        self._acked: dict[TP, list[int]] = defaultdict(list)
        self._acked_index: dict[TP, set[int]] = defaultdict(set)
        self._gap: dict[TP, Any] = defaultdict(IntervalTree)

    def acknowledge(self, tp: TP, offset: int) -> None:
        self._acked[tp].append(offset)
        self._acked_index[tp].add(offset)

    def commit(self) -> int:
        """Commit as the timer does; the committed offset afterwards."""
        offset = self._new_offset(ONE)
        if offset is not None and self._should_commit(ONE, offset):
            self._committed_offset[ONE] = offset
        return self._committed_offset[ONE] or 0


class _Ours(_Faust):
    """The same part of ours."""

    _new_offset = Consumer._new_offset  # type: ignore[assignment]
    _add_gap = Consumer._add_gap  # type: ignore[assignment]
    acknowledge = Consumer.acknowledge  # type: ignore[assignment]


def _commits_past_an_unfinished_message(chance: random.Random, *, gated: bool) -> bool:
    """One random interleaving of deliveries, completions and commits; gaps in some of them."""
    first = chance.choice([1, 10, 2_585])
    with_gaps = chance.random() < 0.5
    consumer = _Ours(first) if gated else _Faust(first)
    gate: AckGate = AckGate()
    in_flight: list[int] = []
    delivered, read = 0, first - 1
    at_once = chance.randint(2, 8)
    while delivered < 40 or in_flight:
        if delivered < 40 and len(in_flight) < at_once:
            offset = read + 1 + (chance.randint(1, 3) if with_gaps and chance.random() < 0.2 else 0)
            if offset - read > 1:
                asyncio.run(consumer._add_gap(ONE, read + 1, offset - 1))  # type: ignore[arg-type]
            in_flight.append(offset)
            gate.take(offset, 0.0)
            read, delivered = offset, delivered + 1
        else:
            done = in_flight.pop(chance.randrange(len(in_flight)))
            for offset in gate.finish(done) if gated else [done]:
                consumer.acknowledge(ONE, offset)
        if chance.random() < 0.4 and in_flight and consumer.commit() > min(in_flight):
            return True
    assert not gated or consumer.commit() == read + 1
    return False


@pytest.mark.parametrize("trials", [300, pytest.param(3_000, marks=pytest.mark.thorough)])
def test_faust_commits_past_unfinished_messages_unless_they_are_gated(trials: int) -> None:
    """If Faust stops doing so, its bookkeeping would do; ours never does, and commits all."""
    ungated = [
        _commits_past_an_unfinished_message(random.Random(seed), gated=False)
        for seed in range(trials)
    ]
    assert sum(ungated) > trials / 4
    for seed in range(trials):
        assert not _commits_past_an_unfinished_message(random.Random(seed), gated=True)
