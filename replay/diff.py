"""What differs between two maps, or between what two foldings of one log say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import orjson

from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused
from processor.render.reduce import reduce
from processor.render.view import state_view
from replay.divergence import first_difference
from replay.errors import StoreError
from schemas.derived import DerivedEvent
from schemas.log import LogEvent
from schemas.wire import canonical_bytes

Json = dict[str, Any]
_NAMED = {"records": "record", "problems": "problem", "agents": "id"}
"""The parts of a map that are lists of things with a name, and what holds the name."""
_LISTS = ("attacks", "disputed", "open_problems")


@final
class MapDiff(NamedTuple):
    """What differs between two maps, part by part; a part without a difference is left out.

    `only_left` and `only_right` hold names, `changed` holds for each name the fields that differ,
    both values each.
    """

    only_left: dict[str, list[Any]]
    only_right: dict[str, list[Any]]
    changed: dict[str, dict[str, dict[str, tuple[Any, Any]]]]

    @property
    def is_empty(self) -> bool:
        """Whether the maps are equal."""
        return not (self.only_left or self.only_right or self.changed)


def diff_maps(left: Conversation, right: Conversation) -> MapDiff:
    """Compare two maps by the names of what is in them; where they come from does not count."""
    return diff_views(_plain(left), _plain(right))


def diff_views(left: Json, right: Json) -> MapDiff:
    """The same for two maps as `state --json` shows them."""
    found = MapDiff({}, {}, {})
    for part, name in _NAMED.items():
        _compare(found, part, _by_name(left[part], name), _by_name(right[part], name))
    for part in _LISTS:
        _compare(found, part, _by_value(left[part]), _by_value(right[part]))
    _compare(found, "commitments", _commitments(left), _commitments(right))
    return found


def _compare(found: MapDiff, part: str, left: Mapping[Any, Any], right: Mapping[Any, Any]) -> None:
    only_left = [_listed(name) for name in left if name not in right]
    only_right = [_listed(name) for name in right if name not in left]
    changed = {
        name: fields
        for name in left
        if name in right and (fields := _changed(left[name], right[name]))
    }
    if only_left:
        found.only_left[part] = only_left
    if only_right:
        found.only_right[part] = only_right
    if changed:
        found.changed[part] = changed


def _changed(left: Json, right: Json) -> dict[str, tuple[Any, Any]]:
    return {
        field: (left.get(field), right.get(field))
        for field in sorted({*left, *right})
        if left.get(field) != right.get(field)
    }


def _commitments(view: Json) -> dict[str, Json]:
    return {agent: {"records": ids} for agent, ids in view["commitments"].items()}


def _by_name(things: Iterable[Json], name: str) -> dict[str, Json]:
    return {thing[name]: thing for thing in things}


def _by_value(values: Iterable[Any]) -> dict[Any, Json]:
    return {tuple(value) if isinstance(value, list) else value: {} for value in values}


def _listed(name: Any) -> Any:
    return list(name) if isinstance(name, tuple) else name


def _plain(conversation: Conversation) -> Json:
    view: Json = orjson.loads(canonical_bytes(state_view(conversation)))
    return view


@final
class EventDiff(NamedTuple):
    """A derived event that two foldings of one log event do not share."""

    sequence: int
    place: int
    type: str
    path: str
    left: Any
    right: Any


def fold_under(
    events: Iterable[LogEvent], rules_version: int, ids: tuple[str, str]
) -> tuple[Conversation, list[tuple[DerivedEvent, ...]]]:
    """Fold a log as if all of it had been appended under these rules. Raises StoreError."""
    conversation = Conversation.empty(*ids)
    derived: list[tuple[DerivedEvent, ...]] = []
    for event in events:
        came = reduce(conversation, event.model_copy(update={"rules_version": rules_version}))
        if isinstance(came, Refused):
            raise StoreError(f"event {event.sequence} does not fold: {came.reason}")
        derived.append(came)
    return conversation, derived


def diff_events(
    left: Sequence[tuple[DerivedEvent, ...]], right: Sequence[tuple[DerivedEvent, ...]]
) -> Iterator[EventDiff]:
    """The derived events that differ, but for digests: those name the rules."""
    for sequence, (ours, theirs) in enumerate(zip(left, right, strict=True), 1):
        for place in range(max(len(ours), len(theirs))):
            one = ours[place] if place < len(ours) else None
            other = theirs[place] if place < len(theirs) else None
            first, second = _told(one), _told(other)
            if first != second:
                path, was, became = first_difference(first, second)
                kind = (one or other or ours[0]).TYPE
                yield EventDiff(sequence, place, kind, path, was, became)


def _told(event: DerivedEvent | None) -> Json | None:
    if event is None:
        return None
    told: Json = orjson.loads(canonical_bytes(event))
    for name in ("digest", "state_digest", "event_id"):
        told.pop(name, None)
    return told
