"""Awareness: which propositions agents have in mind, and since when (Definition A.3).

Awareness only grows. An agent is aware of what was brought to its mind in an utterance it heard,
and of every record it heard of. In a perspective, what counts is what all of its agents know to
have been heard: the audience is mutually aware, the others believe nothing happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeAlias, final

from processor.engine.plausibility.update import Audience, Canonical, includes


class Heard(Protocol):
    """What awareness needs to know of a record."""

    @property
    def turn(self) -> int:
        """The turn that introduced it."""

    @property
    def audience(self) -> Audience:
        """Who heard that turn."""


@final
class Expansion(NamedTuple):
    """A proposition came to the mind of `agents` (None: all who heard), as far as they heard."""

    turn: int
    agents: tuple[str, ...] | None
    audience: Audience

    def reaches(self, agent: str) -> bool:
        """Whether it came to this agent's mind."""
        heard = self.audience is None or agent in self.audience
        return heard and (self.agents is None or agent in self.agents)

    def covers(self, other: Expansion) -> bool:
        """Whether the other one adds nothing to this one."""
        return (
            self.turn <= other.turn
            and includes(self.agents, other.agents)
            and includes(self.audience, other.audience)
        )


AwarenessMark: TypeAlias = int


@final
class Awareness:
    """What has come to whose mind. Records are looked up in `records` by id and never copied.

    `version` changes whenever something is expanded or taken back.
    """

    def __init__(self, records: Mapping[str, Heard] | None = None) -> None:
        self.version = 0
        self._records: Mapping[str, Heard] = {} if records is None else records
        self._expansions: dict[str, list[Expansion]] = {}
        self._journal: list[str] = []

    def expand(
        self,
        proposition: str,
        agents: tuple[str, ...] | None,
        audience: Audience,
        turn: int = 0,
    ) -> None:
        """Bring a proposition to the mind of these agents, None for all who hear the turn.

        Nothing is stored where an earlier expansion covers this one.
        """
        expansion = Expansion(turn, agents, audience)
        earlier = self._expansions.get(proposition)
        if earlier is None:
            self._expansions[proposition] = [expansion]
        elif any(each.covers(expansion) for each in earlier):
            return
        else:
            earlier.append(expansion)
        self._journal.append(proposition)
        self.version += 1

    def is_aware(self, agent: str, proposition: str, perspective: tuple[str, ...] = ()) -> bool:
        """Whether the agent has the proposition in mind now, in the perspective of some agents."""
        return self.test(
            agent,
            proposition,
            lambda audience: audience is None or all(each in audience for each in perspective),
        )

    def is_everyone_aware(self, proposition: str) -> bool:
        """Whether every agent, later ones included, has the proposition in mind."""
        record = self._records.get(proposition)
        if record is not None and record.audience is None:
            return True
        return any(
            expansion.agents is None and expansion.audience is None
            for expansion in self._expansions.get(proposition, ())
        )

    def test(
        self,
        agent: str,
        proposition: str,
        keeps: Callable[[Audience], bool],
        before: tuple[int, int] | None = None,
    ) -> bool:
        """Whether the agent is aware of the proposition by what a perspective keeps.

        With `before`, by expansions before its first turn and records before its second alone.
        """
        record = self._records.get(proposition)
        if record is not None and (before is None or record.turn < before[1]):
            heard = record.audience is None or agent in record.audience
            if heard and keeps(record.audience):
                return True
        return any(
            expansion.reaches(agent)
            and keeps(expansion.audience)
            and (before is None or expansion.turn < before[0])
            for expansion in self._expansions.get(proposition, ())
        )

    def private_audiences(self, propositions: Iterable[str]) -> Iterator[tuple[str, ...]]:
        """The audiences, other than everyone, that ever heard of one of the propositions."""
        for proposition in propositions:
            record = self._records.get(proposition)
            if record is not None and record.audience is not None:
                yield record.audience
            for expansion in self._expansions.get(proposition, ()):
                if expansion.audience is not None:
                    yield expansion.audience

    def propositions(self) -> tuple[str, ...]:
        """Every proposition that was brought up, in the order of its first time."""
        return tuple(self._expansions)

    def canonical(self, proposition: str) -> list[Canonical]:
        """The proposition and its expansions in order, as values that JSON can hold."""
        expansions: list[Canonical] = [
            [each.turn, _listed(each.agents), _listed(each.audience)]
            for each in self._expansions.get(proposition, ())
        ]
        return [proposition, expansions]

    def restore(self, stored: list[Canonical]) -> None:
        """Take in what `canonical` gave for a proposition. Raises ValueError for anything else."""
        match stored:
            case [str(proposition), list(expansions)]:
                for expansion in expansions:
                    match expansion:
                        case [int(turn), agents, audience]:
                            self.expand(proposition, _names(agents), _names(audience), turn)
                        case _:
                            raise ValueError(f"{expansion!r} is no expansion of awareness")
            case _:
                raise ValueError(f"{stored!r} is no part of awareness")

    def mark(self) -> AwarenessMark:
        """This moment."""
        return len(self._journal)

    def rollback(self, mark: AwarenessMark) -> None:
        """Take back every expansion since the mark."""
        while len(self._journal) > mark:
            proposition = self._journal.pop()
            expansions = self._expansions[proposition]
            expansions.pop()
            if not expansions:
                del self._expansions[proposition]
            self.version += 1


def _listed(group: tuple[str, ...] | None) -> Canonical:
    return None if group is None else list(group)


def _names(value: Canonical) -> tuple[str, ...] | None:
    match value:
        case None:
            return None
        case list():
            names = tuple(each for each in value if isinstance(each, str))
            if len(names) == len(value):
                return names
            raise ValueError(f"{value!r} are not all names")
        case _:
            raise ValueError(f"{value!r} is no list of names")
