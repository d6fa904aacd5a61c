"""What has to be remembered of a conversation to tell later what has changed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, final


@final
class Mark(NamedTuple):
    """How far each part of a conversation was at one event; see `snapshot_delta`.

    Parts that only grow are counted. `missing` is a copy, `answers` counts those of each problem,
    `awareness` has the canonical value of each proposition, and `update_turns` the turn of every
    update that was not contracted.
    """

    sequence: int
    turn: int
    utterances: int
    records: int
    attacks: int
    atom_sources: int
    disputes: int
    missing: Mapping[int, str]
    answers: Sequence[int]
    awareness: Sequence[object]
    update_turns: Sequence[int]
