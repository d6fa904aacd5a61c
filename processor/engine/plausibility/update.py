"""The updates of the model: the entries of its log, and what each kind does.

| kind | formula | effect, in the perspective of those who hear it |
|---|---|---|
| law | yes | the law keeps the worlds of the formula |
| announcement | yes | the same; those of one turn can be simultaneous |
| radical | yes | the worlds of the formula become more plausible than all others |
| conservative | yes | the most plausible worlds of the formula become the most plausible of all |
| observes | no | the agent can see these variables from now on |
| variable | an atom | the atom is declared: worlds are counted and listed over declared variables |

An entry may be *bare*: its formula is a variable or the negation of one. Nearly all are.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias, final

from processor.engine.plausibility.formula import DEPTH_MAX, Atom, Formula, atoms
from processor.engine.plausibility.syntax import parse, to_text
from processor.engine.plausibility.tokens import IS_VARIABLE, WORDS

Audience: TypeAlias = tuple[str, ...] | None
"""Who hears an utterance, in ascending order; None is everyone, later agents included."""

Canonical: TypeAlias = "bool | int | str | list[Canonical] | None"
"""A value that JSON can hold, without sets or mappings."""

_STORED_DEPTH_MAX = DEPTH_MAX + 8
"""An update wraps the formula that was brought, as in `id -> formula`."""
_STORED_CHARS_MAX = 2**24


@final
class UpdateKind(StrEnum):
    """What an update does to the model."""

    LAW = "law"
    ANNOUNCEMENT = "announcement"
    RADICAL = "radical"
    CONSERVATIVE = "conservative"
    OBSERVES = "observes"
    VARIABLE = "variable"


_KINDS = {kind.value: kind for kind in UpdateKind}
"""A look-up costs a twentieth of what calling the enumeration does."""


@final
class Update(NamedTuple):
    """One entry of the log.

    `turn` is the statement it belongs to; `tags` are the records it stands for: contraction by one
    of them drops it. `simultaneous` announcements of one turn are all evaluated in the model before
    the first of them. `agent` and `variables` belong to kind observes alone.
    """

    turn: int
    kind: UpdateKind
    formula: Formula | None = None
    tags: tuple[str, ...] = ()
    audience: Audience = None
    simultaneous: bool = False
    agent: str | None = None
    variables: tuple[str, ...] = ()

    def to_canonical(self) -> list[Canonical]:
        """The update as a list that JSON can hold; `from_canonical` is its inverse."""
        return [
            self.turn,
            str(self.kind),
            None if self.formula is None else to_text(self.formula),
            list(self.tags),
            None if self.audience is None else list(self.audience),
            self.simultaneous,
            self.agent,
            list(self.variables),
        ]

    @classmethod
    def from_canonical(cls, stored: list[Canonical]) -> Update:
        """The update of a list made by `to_canonical`. Raises ValueError for any other list."""
        match stored:
            case [
                int(turn),
                str(kind),
                str() | None as formula,
                list(tags),
                list() | None as audience,
                bool(simultaneous),
                str() | None as agent,
                list(variables),
            ] if kind in _KINDS:
                return cls(
                    turn,
                    _KINDS[kind],
                    None if formula is None else _stored_formula(formula),
                    _names(tags),
                    None if audience is None else _names(audience),
                    simultaneous,
                    agent,
                    _names(variables) if variables else (),
                )
            case _:
                raise ValueError(f"{stored!r} is no update")


def includes(larger: Audience, smaller: Audience) -> bool:
    """Whether everyone of one audience belongs to another."""
    if larger is None or smaller is None:
        return larger is None
    return set(smaller) <= set(larger)


def mentioned(update: Update) -> tuple[str, ...]:
    """The variables the update speaks of, each once, in the order in which it does."""
    if update.formula is None:
        return tuple(dict.fromkeys(update.variables))
    return atoms(update.formula)


def _stored_formula(text: str) -> Formula:
    if IS_VARIABLE.fullmatch(text) and text not in WORDS:
        return Atom(text)  # nearly all are; parsing them takes half of reading a snapshot
    return parse(text, chars_max=_STORED_CHARS_MAX, depth_max=_STORED_DEPTH_MAX)


def _names(values: list[Canonical]) -> tuple[str, ...]:
    names = tuple([value for value in values if isinstance(value, str)])
    if len(names) != len(values):
        raise ValueError(f"{values!r} are not all names")
    return names
