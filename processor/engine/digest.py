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

from array import array
from collections.abc import Iterable
from hashlib import sha256
from typing import final

from processor.engine.canonical import dispute_values, problem_posed, record_introduction
from processor.engine.errors import BrokenInvariantError
from processor.engine.hash_tree import EMPTY_LEAF, HashTree, plain_root
from processor.engine.record import Record
from processor.engine.state import Problem, State
from processor.engine.transition import Change, Part, Transition
from schemas.policy import Policy
from schemas.wire import canonical_content

GENESIS = sha256(b"standfast.genesis.v1").hexdigest()
"""The digest before the first event of any conversation."""


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
        self._stale_records: list[Record] = []
        self._stale: list[tuple[Part, str | int]] = []
        self._digest: str | None = None  # unless something is stale, or the policy is another
        self._tenant_policy: Policy | None = None

    def absorb(self, transition: Transition, turn: int) -> None:
        """Remember what a transition that is kept has touched."""
        self._digest = None
        self._stale_records += transition.born
        self._stale_records += transition.touched_records
        self._stale += transition.touched
        if transition.updated_model:
            self._stale.append((Part.UPDATES, turn))

    def absorb_all(self, state: State) -> None:
        """Remember that everything is new, as after loading a snapshot."""
        self._digest = None
        self._stale_records = list(state.records.values())
        self._stale = [
            *((Part.PROBLEM, problem) for problem in state.problems),
            *((Part.DISPUTE, place) for place in range(len(state.disputes))),
            *((Part.UPDATES, update.turn) for update in state.model.updates()),
            *((Part.AWARENESS, proposition) for proposition in state.awareness.propositions()),
        ]

    def hexdigest(self, state: State) -> str:
        """The digest of the state in lower-case hexadecimal; costs what was touched since."""
        if self._digest is not None and self._tenant_policy is state.tenant_policy:
            return self._digest
        for record in dict.fromkeys(self._stale_records):
            self._refresh_record(record)
        for part, touched in dict.fromkeys(self._stale):
            self._refresh(state, part, touched)
        self._stale_records.clear()
        self._stale.clear()
        sections = (
            self._records,
            self._problems,
            self._disputes,
            self._updates,
            self._awareness,
        )
        self._digest = _combine([tree.root() for tree in sections], state)
        self._tenant_policy = state.tenant_policy
        return self._digest

    def _refresh_record(self, record: Record) -> None:
        entries = self._record_entries
        position = record.position
        if position == len(entries):
            entries.append(0)
            leaf = _hash(record_introduction(record))
        else:
            leaf = self._records[position]
        if record.trail:
            for entry in record.trail[entries[position] :]:
                leaf = _link(leaf, tuple(entry))
            entries[position] = len(record.trail)
        self._records.set(position, leaf)

    def _refresh(self, state: State, part: Part, touched: str | int) -> None:
        match part, touched:
            case Part.UPDATES, int():
                self._updates.set(touched, _updates_leaf(state, touched))
            case Part.PROBLEM, str():
                self._refresh_problem(state.problems[touched])
            case Part.DISPUTE, int():
                self._disputes.set(touched, _hash(dispute_values(state.disputes[touched])))
            case Part.AWARENESS, str():
                places = self._awareness_places
                place = places.setdefault(touched, len(places))
                self._awareness.set(place, _hash(state.awareness.canonical(touched)))
            case _:
                raise BrokenInvariantError(f"{touched!r} is no {part}")

    def _refresh_problem(self, problem: Problem) -> None:
        place = self._problem_places.get(problem.id)
        if place is None:
            place = self._problem_places[problem.id] = len(self._problem_places)
            self._problem_answers[problem.id] = 0
            leaf = _hash(problem_posed(problem))
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
        [
            _chain_leaf(_hash(record_introduction(r)), map(tuple, r.trail))
            for r in state.records.values()
        ],
        [_chain_leaf(_hash(problem_posed(p)), p.answers) for p in state.problems.values()],
        [_hash(dispute_values(dispute)) for dispute in state.disputes],
        [
            _updates_leaf(state, turn) if turn in turns else EMPTY_LEAF
            for turn in range(max(turns, default=-1) + 1)
        ],
        [_hash(state.awareness.canonical(p)) for p in state.awareness.propositions()],
    )
    return _combine([plain_root(leaves) for leaves in sections], state)


def chain(previous: str, header: list[str | int], content: bytes, change: list[Change]) -> str:
    """The digest of the log after one more event.

    `header` says in clear which event it is (tenant, conversation, sequence, kind, rules version),
    `content` is what was said in canonical bytes, `change` what it did to the map. Content and
    change enter as hashes of their own, so that the chain can be checked without them.
    """
    return sha256(
        bytes.fromhex(previous)
        + canonical_content(header)
        + sha256(content).digest()
        + _hash(change)
    ).hexdigest()


def _combine(roots: list[bytes], state: State) -> str:
    roles = _hash(sorted(state.roles.items())) if state.roles else _NO_ROLES
    policies = b""
    if state.own_policy is not None or state.tenant_policy is not None:
        policies = _hash([state.own_policy, state.tenant_policy])
    return sha256(b"standfast.state.v1" + b"".join(roots) + roles + policies).hexdigest()


_NO_ROLES = sha256(canonical_content([])).digest()


def _updates_leaf(state: State, turn: int) -> bytes:
    updates = state.model.updates_of_turn(turn)
    return _hash([update.to_canonical() for update in updates]) if updates else EMPTY_LEAF


def _chain_leaf(start: bytes, entries: Iterable[object]) -> bytes:
    leaf = start
    for entry in entries:
        leaf = _link(leaf, entry)
    return leaf


def _link(leaf: bytes, entry: object) -> bytes:
    return sha256(leaf + canonical_content(entry)).digest()


def _hash(value: object) -> bytes:
    return sha256(canonical_content(value)).digest()
