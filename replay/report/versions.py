"""The versions of a record: from which turn to which it stood how, told by the final state alone.

A record's trail says when its standing changed and when it came to rest on another. When the strict
answer on it turned to no is a shortest path: the smallest turn, over all ways down its support
links, at which the whole way was there and its end had left good standing. So no turn has to be
looked at twice, and a conversation costs O(records + links), up to a logarithm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import NamedTuple, final

from processor.engine.record import Happening, LinkKind, Record
from processor.engine.state import Dispute, State
from schemas.derived import Grade, Standing

FOREVER = 2**63 - 1


@final
class Version(NamedTuple):
    """A record from the end of turn `start` until the end of turn `end`, which is the next one's.

    `end` is None for the version that is still so.
    """

    start: int
    end: int | None
    standing: Standing
    grade: Grade
    disputed: bool


@final
class DatedLink(NamedTuple):
    """A support link and the turn since which it is there; links are never taken back."""

    support: Record
    kind: LinkKind
    turn: int


def dated_links(record: Record) -> list[DatedLink]:
    """The support links of a record in the order they were made."""
    turns = [record.turn] * len(record.premises())
    turns += [entry.turn for entry in record.happened(Happening.LINKED)]
    return [
        DatedLink(support, kind, turn)
        for (support, kind), turn in zip(record.links(), turns, strict=True)
    ]


def fallen_since(record: Record) -> int | None:
    """The turn in which a record left good standing, if it did; it never comes back."""
    for entry in record.happened(Happening.STANDING):
        if entry.value in (Standing.WEAKENED, Standing.ABANDONED):
            return entry.turn
    return None


def ungrounded_since(records: Iterable[Record], *, core: bool) -> dict[Record, int]:
    """The turn at whose end each record was ungrounded for the first time, if it ever was.

    With `core`, the walk leaves out corroboration (the grade); without, it is the strict answer.
    """
    since: dict[Record, int] = {}
    above: dict[Record, list[tuple[Record, int]]] = {}
    queue: list[tuple[int, int, Record]] = []
    for record in records:
        fallen = fallen_since(record)
        if fallen is not None:
            heappush(queue, (fallen, record.position, record))
        for link in dated_links(record):
            if not (core and link.kind is LinkKind.CORROBORATION):
                above.setdefault(link.support, []).append((record, link.turn))
    while queue:
        turn, _, record = heappop(queue)
        if record in since:
            continue
        since[record] = turn
        for dependent, linked in above.get(record, ()):
            if dependent not in since:
                heappush(queue, (max(turn, linked), dependent.position, dependent))
    return since


def disputes_of(disputes: Iterable[Dispute]) -> dict[str, list[tuple[int, int]]]:
    """When each record was in dispute, as half-open spans of turns."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for dispute in disputes:
        cleared = FOREVER if dispute.cleared_turn is None else dispute.cleared_turn
        for side in dispute.sides():
            spans.setdefault(side, []).append((dispute.opened_turn, cleared))
    return spans


def all_versions(state: State) -> Iterator[tuple[Record, list[Version]]]:
    """Every record, in the order they were introduced, with its versions."""
    records = list(state.records.values())
    strict = ungrounded_since(records, core=False)
    core = ungrounded_since(records, core=True)
    spans = disputes_of(state.disputes)
    for record in records:
        yield record, _versions(record, strict, core, spans.get(record.id, []))


def _versions(
    record: Record,
    strict: Mapping[Record, int],
    core: Mapping[Record, int],
    disputed: list[tuple[int, int]],
) -> list[Version]:
    standings = [(record.turn, Standing.ACTIVE)]
    for entry in record.happened(Happening.STANDING):
        standings.append((entry.turn, Standing(entry.value or "")))
    lost, core_lost = strict.get(record, FOREVER), core.get(record, FOREVER)
    turns = {record.turn, lost, core_lost, *(turn for turn, _ in standings)}
    turns.update(turn for span in disputed for turn in span)
    starts = sorted(turn for turn in turns if record.turn <= turn < FOREVER)
    versions: list[Version] = []
    for start in starts:
        standing = [each for turn, each in standings if turn <= start][-1]
        grade = (
            Grade.GROUNDED
            if start < lost
            else Grade.CORROBORATION_LOST
            if start < core_lost
            else Grade.UNGROUNDED
        )
        contested = any(opened <= start < cleared for opened, cleared in disputed)
        version = Version(start, None, standing, grade, contested)
        if versions and versions[-1][2:] == version[2:]:
            continue
        if versions:
            versions[-1] = versions[-1]._replace(end=start)
        versions.append(version)
    return versions
