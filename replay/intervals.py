"""Interval rows: what each turn changed, as versions that hold from one turn to another.

They cost O(changes): a turn adds versions of what it changed and closes the ones before. The
grounded flags have no entry in any trail, so what lost them is found by going up from what the turn
touched, as far as something changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeAlias, final

from processor.engine.authority import policy_in_force
from processor.engine.conversation import Conversation
from processor.engine.plausibility.syntax import to_text
from processor.engine.record import Happening, Record
from processor.engine.state import Problem
from processor.engine.transition import Change
from processor.engine.verify import grade

Row: TypeAlias = tuple[Any, ...]
TABLES = (
    "record_versions",
    "link_versions",
    "attack_versions",
    "atom_versions",
    "problem_versions",
    "agent_versions",
    "policy_versions",
    "missing_versions",
)
_HAPPENINGS = frozenset(Happening)


@final
class _Version:
    """What holds of one thing since a turn."""

    __slots__ = ("from_turn", "values")

    def __init__(self, from_turn: int, values: Row) -> None:
        self.from_turn = from_turn
        self.values = values


@final
class Intervals:
    """The interval rows of one conversation, as it is folded; tell it of every turn in order."""

    def __init__(self, tenant_id: str, conversation_id: str) -> None:
        self._ids = (tenant_id, conversation_id)
        self._closed: list[tuple[str, Row]] = []
        self._open: dict[tuple[str, str, int], _Version] = {}
        self._answered: dict[str, list[str]] = {}
        self._disputed: dict[str, None] = {}
        self._missing: dict[int, str] = {}
        self._attacks = 0
        self._policy: str | None = None
        self._policies = 0
        self._records = 0
        self._places: dict[str, int] = {}

    def after_setup(self, conversation: Conversation) -> None:
        """The conversation was set up: its agents hold from turn 0."""
        for place, (agent, role) in enumerate(conversation.state.roles.items()):
            self._hold("agent_versions", agent, place, 0, (role,))
        self._govern(conversation)

    def after_turn(self, conversation: Conversation, change: list[Change]) -> None:
        """A statement was folded; `change` is what its outcome says that it did to the map."""
        state, turn = conversation.state, conversation.turn
        for record in islice(state.records.values(), self._records, None):
            self._introduce(record, turn)
        self._records = len(state.records)
        touched: dict[str, None] = {}
        problems: dict[str, None] = {}
        for entry in change:
            kind, subject = str(entry[0]), str(entry[1])
            if kind in ("record", "dispute", *_HAPPENINGS):
                touched[subject] = None
            if kind in ("problem", "answer"):
                problems[subject] = None
            if kind == Happening.ATTACKED:
                self._hold("attack_versions", subject, self._attacks, turn, (entry[3],))
                self._attacks += 1
        if self._disputed.keys() != state.disputed.keys():
            touched |= dict.fromkeys(self._disputed) | dict.fromkeys(state.disputed)
            self._disputed = dict.fromkeys(state.disputed)
        self._follow(conversation, touched, problems)
        for id_ in problems:
            self._pose(conversation, state.problems[id_])
        self._cover(conversation)
        self._govern(conversation)

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Each (table, row) of the conversation: the closed versions, then the open ones."""
        yield from self._closed
        for (table, name, place), version in self._open.items():
            yield table, self._row(name, place, version, None)

    def _introduce(self, record: Record, turn: int) -> None:
        for place, atom in enumerate(record.atoms):
            of = None if atom.of is None else list(atom.of)
            told = (atom.entity, atom.attribute, atom.value, atom.polarity)
            values = (*told, atom.valid_from, atom.valid_to, atom.facet, atom.relation, of)
            self._hold("atom_versions", record.id, place, turn, values)

    def _follow(
        self, conversation: Conversation, touched: dict[str, None], problems: dict[str, None]
    ) -> None:
        """Note what changed of the touched records, and of those that rest on them."""
        records = conversation.state.records
        queue = [records[id_] for id_ in touched if id_ in records]
        for record in queue:  # grows while it is gone through
            if not self._note(conversation, record):
                continue
            for id_ in self._answered.get(record.id, ()):
                problems[id_] = None
            queue += (each for each in record.dependents if self._flags_differ(each))

    def _flags_differ(self, record: Record) -> bool:
        version = self._open.get(("record_versions", record.id, record.position))
        return version is None or version.values[7:9] != (record.grounded, grade(record))

    def _note(self, conversation: Conversation, record: Record) -> bool:
        turn, state = conversation.turn, conversation.state
        for place, (support, kind) in enumerate(record.links()):
            self._hold("link_versions", record.id, place, turn, (support.id, kind))
        formula = None if record.formula is None else to_text(record.formula)
        told = (record.kind, record.claim, formula, record.speaker, record.turn, record.standing)
        flags = (record.stands, record.grounded, grade(record), record.id in state.disputed)
        values = (*told, *flags, record.committed, list(record.answers))
        return self._hold("record_versions", record.id, record.position, turn, values)

    def _pose(self, conversation: Conversation, problem: Problem) -> None:
        place = self._places.setdefault(problem.id, len(self._places))
        for answer in problem.answers:
            answered = self._answered.setdefault(answer, [])
            if problem.id not in answered:
                answered.append(problem.id)
        kind = "question" if problem.is_question else "surprise"
        told = (kind, problem.text, list(problem.about), problem.speaker, problem.turn)
        values = (*told, list(problem.answers), conversation.state.is_open(problem))
        self._hold("problem_versions", problem.id, place, conversation.turn, values)

    def _govern(self, conversation: Conversation) -> None:
        """Another policy may be in force."""
        policy, turn = policy_in_force(conversation.state).version, conversation.turn
        if policy == self._policy:
            return
        if self._policy is not None:
            self._close(("policy_versions", self._policy, self._policies - 1), turn)
        self._hold("policy_versions", policy, self._policies, turn, ())
        self._policy = policy
        self._policies += 1

    def _cover(self, conversation: Conversation) -> None:
        """Turns that could not be interpreted hold until they are filled."""
        turn = conversation.turn
        for place, utterance in list(self._missing.items()):
            if place not in conversation.missing:
                self._close(("missing_versions", utterance, place), turn)
                del self._missing[place]
        if turn in conversation.missing:
            self._missing[turn] = conversation.missing[turn]
            self._hold("missing_versions", self._missing[turn], turn, turn, ())

    def _hold(self, table: str, name: str, place: int, turn: int, values: Row) -> bool:
        """From this turn on, this holds; whether that is new."""
        key = (table, name, place)
        version = self._open.get(key)
        if version is not None and version.values == values:
            return False
        if version is not None and version.from_turn == turn:
            version.values = values
            return True
        self._close(key, turn)
        self._open[key] = _Version(turn, values)
        return True

    def _close(self, key: tuple[str, str, int], turn: int) -> None:
        version = self._open.pop(key, None)
        if version is not None:
            table, name, place = key
            self._closed.append((table, self._row(name, place, version, turn)))

    def _row(self, name: str, place: int, version: _Version, to_turn: int | None) -> Row:
        return (*self._ids, name, place, version.from_turn, to_turn, *version.values)
