"""Digests: two logs that say the same have equal ones, on every machine.

The state digest covers what stands in D_t and nothing else, so a refused operation leaves it as it
is. It is kept incrementally: each part of the state (a record, a problem, a turn's updates, ...) is
a leaf, and the leaves of a section form a tree whose inner nodes hash sixteen children, so a change
costs O(log n) hashes and is made up only when the digest is asked for. `state_digest` computes the
same from the state alone and is the oracle.

A record's leaf is a chain: the hash of what it was introduced with, then one link for each entry of
its trail. So a record with thousands of supports costs no more to touch than any other.

The digest of the log chains one event to the last: see `chain`.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable
from typing import final

from processor.engine.errors import BrokenInvariantError
from processor.engine.plausibility.formula import to_wire
from processor.engine.record import Record
from processor.engine.state import Dispute, Problem, State
from processor.engine.transition import Canonical, Part, Transition
from schemas.wire import canonical_content

FANOUT = 16
_SIZE = 32
_EMPTY = bytes(_SIZE)
GENESIS = hashlib.sha256(b"standfast.genesis.v1").hexdigest()
"""The digest before the first event of any conversation."""


@final
class HashTree:
    """A list of 32-byte leaves under a tree of hashes; trailing empty leaves do not count."""

    def __init__(self) -> None:
        self._levels: list[bytearray] = [bytearray()]
        self._dirty: dict[int, None] = {}
        self._root: bytes | None = None

    def __getitem__(self, index: int) -> bytes:
        return bytes(self._levels[0][index * _SIZE : (index + 1) * _SIZE])

    def set(self, index: int, leaf: bytes) -> None:
        """Put a leaf in its place; places in between are empty until they are set."""
        leaves = self._levels[0]
        start = index * _SIZE
        if start > len(leaves):
            grown = range(len(leaves) // _SIZE // FANOUT, index // FANOUT)
            self._dirty.update(dict.fromkeys(grown))
            leaves.extend(bytes(start - len(leaves)))
        leaves[start : start + _SIZE] = leaf
        self._dirty[index // FANOUT] = None
        while leaves and leaves[-_SIZE:] == _EMPTY:
            del leaves[-_SIZE:]
            self._dirty[len(leaves) // _SIZE // FANOUT] = None

    def root(self) -> bytes:
        """The hash over all leaves and their number."""
        dirty = self._dirty
        if not dirty and self._root is not None:
            return self._root
        level = 0
        while len(self._levels[level]) > _SIZE:
            below = self._levels[level]
            if level + 1 == len(self._levels):
                self._levels.append(bytearray())
            above = self._levels[level + 1]
            width = -(-len(below) // (_SIZE * FANOUT))
            del above[width * _SIZE :]
            if len(above) < width * _SIZE:
                dirty = dict.fromkeys([*dirty, *range(len(above) // _SIZE, width)])
                above.extend(bytes(width * _SIZE - len(above)))
            for node in dirty:
                if node < width:
                    children = below[node * _SIZE * FANOUT : (node + 1) * _SIZE * FANOUT]
                    above[node * _SIZE : (node + 1) * _SIZE] = hashlib.sha256(children).digest()
            dirty = dict.fromkeys([node // FANOUT for node in dirty])
            level += 1
        del self._levels[level + 1 :]
        self._dirty = {}
        count = len(self._levels[0]) // _SIZE
        self._root = hashlib.sha256(count.to_bytes(8, "big") + self._levels[level]).digest()
        return self._root


@final
class StateDigest:
    """The state digest of one conversation, kept up to date by what each transition touched."""

    def __init__(self) -> None:
        self._records = HashTree()
        self._record_entries = array("L")
        self._problems = HashTree()
        self._problem_places: dict[str, int] = {}
        self._problem_answers: dict[str, int] = {}
        self._disputes = HashTree()
        self._updates = HashTree()
        self._awareness = HashTree()
        self._awareness_places: dict[str, int] = {}
        self._stale: dict[tuple[Part, Record | str | int], None] = {}

    def absorb(self, transition: Transition, turn: int) -> None:
        """Remember what a transition that is kept has touched."""
        stale = self._stale
        for record in transition.born:
            stale[Part.RECORD, record] = None
        for touched in transition.touched:
            stale[touched] = None
        if transition.updated_model:
            stale[Part.UPDATES, turn] = None

    def absorb_all(self, state: State) -> None:
        """Remember that everything is new, as after loading a snapshot."""
        self._stale = dict.fromkeys(
            [
                *((Part.RECORD, record) for record in state.records.values()),
                *((Part.PROBLEM, problem) for problem in state.problems),
                *((Part.DISPUTE, place) for place in range(len(state.disputes))),
                *((Part.UPDATES, update.turn) for update in state.model.updates()),
                *((Part.AWARENESS, proposition) for proposition in state.awareness.propositions()),
            ]
        )

    def hexdigest(self, state: State) -> str:
        """The digest of the state in lower-case hexadecimal; costs what was touched since."""
        for part, touched in self._stale:
            self._refresh(state, part, touched)
        self._stale.clear()
        sections = (
            self._records,
            self._problems,
            self._disputes,
            self._updates,
            self._awareness,
        )
        return _combine([tree.root() for tree in sections], state)

    def _refresh(self, state: State, part: Part, touched: Record | str | int) -> None:
        match part, touched:
            case Part.RECORD, Record():
                self._refresh_record(touched)
            case Part.PROBLEM, str():
                self._refresh_problem(state.problems[touched])
            case Part.DISPUTE, int():
                self._disputes.set(touched, _dispute_leaf(state.disputes[touched]))
            case Part.UPDATES, int():
                self._updates.set(touched, _updates_leaf(state, touched))
            case Part.AWARENESS, str():
                places = self._awareness_places
                place = places.setdefault(touched, len(places))
                self._awareness.set(place, _hash(state.awareness.canonical(touched)))
            case _:
                raise BrokenInvariantError(f"{touched!r} is no {part}")

    def _refresh_record(self, record: Record) -> None:
        entries = self._record_entries
        position = record.position
        if position == len(entries):
            entries.append(0)
            leaf = _record_start(record)
        else:
            leaf = self._records[position]
        for entry in record.trail[entries[position] :]:
            leaf = _link(leaf, tuple(entry))
        entries[position] = len(record.trail)
        self._records.set(position, leaf)

    def _refresh_problem(self, problem: Problem) -> None:
        place = self._problem_places.get(problem.id)
        if place is None:
            place = self._problem_places[problem.id] = len(self._problem_places)
            self._problem_answers[problem.id] = 0
            leaf = _problem_start(problem)
        else:
            leaf = self._problems[place]
        for answer in problem.answers[self._problem_answers[problem.id] :]:
            leaf = _link(leaf, answer)
        self._problem_answers[problem.id] = len(problem.answers)
        self._problems.set(place, leaf)


def state_digest(state: State) -> str:
    """The state digest from the state alone, in O(state): the oracle of `StateDigest`."""
    turns = {update.turn for update in state.model.updates()}
    sections = (
        [_chain_leaf(_record_start(r), map(tuple, r.trail)) for r in state.records.values()],
        [_chain_leaf(_problem_start(p), p.answers) for p in state.problems.values()],
        [_dispute_leaf(dispute) for dispute in state.disputes],
        [
            _updates_leaf(state, turn) if turn in turns else _EMPTY
            for turn in range(max(turns, default=-1) + 1)
        ],
        [_hash(state.awareness.canonical(p)) for p in state.awareness.propositions()],
    )
    return _combine([_plain_root(leaves) for leaves in sections], state)


def chain(previous: str, header: list[str | int], content: bytes, change: Canonical) -> str:
    """The digest of the log after one more event.

    `header` says in clear which event it is (tenant, conversation, sequence, kind, rules version),
    `content` is what was said in canonical bytes, `change` what it did to the map. Content and
    change enter as hashes of their own, so that the chain can be checked without them.
    """
    digest = hashlib.sha256(bytes.fromhex(previous))
    digest.update(canonical_content(header))
    digest.update(hashlib.sha256(content).digest())
    digest.update(_hash(change))
    return digest.hexdigest()


def _combine(roots: list[bytes], state: State) -> str:
    roles = _hash(sorted(state.roles.items()))
    return hashlib.sha256(b"standfast.state.v1" + b"".join(roots) + roles).hexdigest()


def _plain_root(leaves: list[bytes]) -> bytes:
    """The root of a `HashTree` with these leaves, computed from the bottom."""
    count = len(leaves)
    level = leaves
    while len(level) > 1:
        level = [
            hashlib.sha256(b"".join(level[start : start + FANOUT])).digest()
            for start in range(0, len(level), FANOUT)
        ]
    return hashlib.sha256(count.to_bytes(8, "big") + b"".join(level)).digest()


def _record_start(record: Record) -> bytes:
    return _hash(
        [
            record.id,
            record.claim,
            record.kind,
            record.op,
            record.speaker,
            record.turn,
            record.audience,
            None if record.formula is None else to_wire(record.formula),
            record.atoms,
            record.answers,
            [support.id for support in record.supports[: record.premise_count]],
        ]
    )


def _problem_start(problem: Problem) -> bytes:
    return _hash(
        [
            problem.id,
            problem.text,
            problem.about,
            problem.speaker,
            problem.turn,
            problem.is_question,
        ]
    )


def _dispute_leaf(dispute: Dispute) -> bytes:
    return _hash(
        [dispute.observation, dispute.contradicts, dispute.opened_turn, dispute.cleared_turn]
    )


def _updates_leaf(state: State, turn: int) -> bytes:
    updates = state.model.updates_of_turn(turn)
    return _hash([update.to_canonical() for update in updates]) if updates else _EMPTY


def _chain_leaf(start: bytes, entries: Iterable[object]) -> bytes:
    leaf = start
    for entry in entries:
        leaf = _link(leaf, entry)
    return leaf


def _link(leaf: bytes, entry: object) -> bytes:
    return hashlib.sha256(leaf + canonical_content(entry)).digest()


def _hash(value: object) -> bytes:
    return hashlib.sha256(canonical_content(value)).digest()
