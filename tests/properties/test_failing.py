"""The failing records below a claim: what either walk finds, and how much of it is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from processor.engine import room
from processor.engine.failing import failures, failures_of_each
from processor.engine.record import Record
from processor.engine.verify import verify_record
from schemas.derived import (
    FAILURES_MAX,
    PATH_IDS_MAX,
    DerivedEvent,
    Outcome,
    UngroundedAlert,
    VerdictEvent,
)
from tests.engine.given import Given, inline, observe, resolve, revise, support
from tests.oracles import naive_queries as ask
from tests.oracles.naive_map import Map
from tests.properties.engine_driver import as_map, folded
from tests.strategies_streams import seeded_stream

Told = tuple[list[tuple[str, tuple[str, ...]]], bool]


def expected(m: Map, starts: Sequence[str], most: int) -> Told:
    """The failing records with their paths by definition, and whether these are all."""
    paths = ask.shortest_paths(m, starts)
    failing = set(paths) - ask.good_standing(m)
    nearest = sorted(failing, key=lambda name: (len(paths[name]), name))[:most]
    return [(name, paths[name]) for name in sorted(nearest)], len(failing) <= most


@pytest.mark.parametrize("most", [1, 2, 3, 1_000])
@pytest.mark.parametrize("seed", range(12))
def test_both_walks_find_the_nearest_by_definition(seed: int, most: int) -> None:
    """Down from each claim or up from all failing records, the answer is the obvious one."""
    for conversation in folded(seeded_stream(seed, 60)).conversations.values():
        records = list(conversation.state.records.values())
        m = as_map(conversation.state)

        def told(starts: list[Record], most: int = most) -> Told:
            found = failures(starts, most)
            return [(each.record, each.path) for each in found.listed], found.complete

        for record in records:
            assert told([record]) == expected(m, [record.id], most)
        for pair in zip(records, records[3:], strict=False):
            assert told(list(pair)) == expected(m, [each.id for each in pair], most)
        fallen = [record for record in records if not record.grounded]
        assert failures_of_each(fallen, most) == [failures([each], most) for each in fallen]


def said(given: Given, length: int, name: str, decided: bool = False) -> None:
    """A chain in which each record rests on the one before it, each resolved if so wished."""
    chain = [observe(f"{name}0")]
    chain += [observe(f"{name}{n}", f"{name}{n - 1}") for n in range(1, length)]
    for start in range(0, length, 256):
        given.say(*chain[start : start + 256])
        if decided:
            given.say(*(resolve(each["record"]) for each in chain[start : start + 256]))


def verdicts(events: Sequence[DerivedEvent]) -> Iterator[VerdictEvent]:
    """The verdicts among derived events."""
    return (event for event in events if isinstance(event, VerdictEvent))


@pytest.mark.parametrize(("length", "omitted"), [(PATH_IDS_MAX, 0), (PATH_IDS_MAX + 1, 1)])
def test_a_path_is_whole_up_to_its_bound(length: int, omitted: int) -> None:
    """One id more than the bound leaves out the one in the middle."""
    given = Given()
    said(given, length, "r")
    given.say(revise("r0", inline("e")))
    (failure,) = verify_record(given.conversation.state, f"r{length - 1}").failures.listed
    path = [f"r{number}" for number in reversed(range(length))]
    assert failure.path_omitted == omitted
    if omitted:
        del path[PATH_IDS_MAX // 2]
    assert failure.path == tuple(path)


def test_a_long_path_keeps_its_two_ends() -> None:
    """Deep under a claim, the failing record is named with the way out and the way in."""
    given = Given()
    said(given, 5_000, "r")
    given.say(revise("r0", inline("e")))
    verdict = next(verdicts(given.utter(kind="candidate", claims=[{"record": "r4999"}])))
    (failure,) = verdict.failures
    half = PATH_IDS_MAX // 2
    assert failure.path[:half] == tuple(f"r{4999 - number}" for number in range(half))
    assert failure.path[half:] == tuple(f"r{half - 1 - number}" for number in range(half))
    assert failure.path_omitted == 5_000 - PATH_IDS_MAX


def test_two_thousand_decisions_fall_in_one_turn() -> None:
    """Each is told why, verdict and alert, and what is said grows with their number alone."""
    given = Given()
    said(given, 2_000, "r", decided=True)
    events = given.utter(operations=[revise("r0", inline("e"))])
    told = list(verdicts(events))
    alerts = [event for event in events if isinstance(event, UngroundedAlert)]
    # r0 itself is abandoned now, and so no decision any more.
    assert len(told) == len(alerts) == 1_999
    assert {failure.record for verdict in told for failure in verdict.failures} == {"r0"}
    assert all(len(verdict.failures[0].path) <= PATH_IDS_MAX for verdict in told)
    deepest = next(alert for alert in alerts if alert.record == "r1999")
    assert "r1999 -> r1998 -> r1997 -> (1995 more) -> r1 -> r0" in deepest.message
    middle = next(verdict for verdict in told if verdict.record == "r1000")
    assert verify_record(given.conversation.state, "r1000").failures.listed == middle.failures


def test_the_verdicts_of_a_turn_share_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many decisions that come to rest on many failing records name the nearest, and say so."""
    for bound in ("EVENT_IDS_MAX", "TOGETHER_IDS_MAX"):
        monkeypatch.setattr(room, bound, 10**9)  # the paths of all of them; see test_room.py
    given = Given()
    said(given, 400, "d", decided=True)
    said(given, 200, "f")
    given.say(*(revise(f"f{number}", "d0") for number in range(200)))
    given.say(observe("top", "f199"))
    told = list(verdicts(given.utter(operations=[support("d0", "top")])))
    share = FAILURES_MAX // 400
    assert [len(verdict.failures) for verdict in told] == [share] * 400
    assert not any(verdict.failures_complete for verdict in told)
    nearest = sorted(f"f{number}" for number in range(200 - share, 200))
    assert all([f.record for f in verdict.failures] == nearest for verdict in told)
    asked = verify_record(given.conversation.state, "d399")
    assert len(asked.failures.listed) == 200
    assert asked.failures.complete


def test_the_claims_of_a_candidate_share_the_bound() -> None:
    """A draft with many claims names fewer failing records for each, and never none."""
    given = Given()
    said(given, 200, "f")
    given.say(observe("d0"), *(revise(f"f{number}", "d0") for number in range(200)))
    claims = [{"record": "f199"}] * 512
    told = list(verdicts(given.utter(kind="candidate", claims=claims)))
    assert {verdict.outcome for verdict in told} == {Outcome.UNGROUNDED}
    assert {len(verdict.failures) for verdict in told} == {FAILURES_MAX // 512}
