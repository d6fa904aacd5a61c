"""ReviseQA: a context and its seven edits as utterances.

Each edit is what successive contexts differ in, as sets of formulas: the edits that are listed with
them do not always lead from one to the next. Turn 1 observes the original premises, `p0`, `p1`, ...
in order; each edit is one turn that observes what is new and revises what is gone, by the first of
the new premises, or by a record of its own (`e3` for edit 3) if the edit only takes away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from replay.evaluate.adapters import Published, moment, parse_published
from schemas.operations import InlineRecord, Observe, Operation, Revise
from schemas.utterance import Utterance

SPEAKER = "context"


@final
class Edit(Published):
    """A context as an edit leaves it, and whether the conclusion follows from it."""

    edited_context_fol: tuple[str, ...]
    edited_natural_language_context: tuple[str, ...]
    conclusion: str
    conclusion_fol: str
    answer: str


@final
class Revised(Published):
    """One scenario with its edits."""

    id: str
    original_context: tuple[str, ...]
    original_context_fol: tuple[str, ...]
    edits: tuple[Edit, ...]

    def contexts(self) -> Iterator[dict[str, str]]:
        """Formula -> sentence of the original context and of each edited one."""
        yield dict(zip(self.original_context_fol, self.original_context, strict=True))
        for edit in self.edits:
            sentences = edit.edited_natural_language_context
            yield dict(zip(edit.edited_context_fol, sentences, strict=True))


@final
@dataclass(frozen=True)
class Told:
    """The utterances of a scenario, and which formula each premise record stands for."""

    utterances: tuple[Utterance, ...]
    formulas: Mapping[str, str]


@final
@dataclass
class _Telling:
    """A scenario while it is told: formula -> record of what is in the context."""

    standing: dict[str, str] = field(default_factory=dict)
    formulas: dict[str, str] = field(default_factory=dict)

    def turn(self, place: int, context: Mapping[str, str]) -> tuple[list[Operation], str]:
        """The operations that lead to a context, and the same in words."""
        gone = [formula for formula in self.standing if formula not in context]
        new = [formula for formula in context if formula not in self.standing]
        targets = [self.standing.pop(formula) for formula in gone]
        operations: list[Operation] = []
        for formula in new:
            record = f"p{len(self.formulas)}"
            self.formulas[record] = formula
            self.standing[formula] = record
            operations.append(Observe(op="observe", record=record, claim=context[formula]))
        by: str | InlineRecord = InlineRecord(
            record=f"e{place}", claim=f"Edit {place} takes premises away."
        )
        for target in targets:
            if new:
                by = self.standing[new[0]]
            operations.append(Revise(op="revise", target=target, by=by))
            by = f"e{place}"
        return operations, " ".join(context[formula] for formula in new)


def read_revised(path: Path) -> Iterator[Revised]:
    """The scenarios of a published file in order. Raises AdapterError, OSError."""
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            yield parse_published(Revised, line, f"{path}:{number}")


def told(scenario: Revised) -> Told:
    """The scenario as utterances, one for the context and one for each edit."""
    telling = _Telling()
    utterances: list[Utterance] = []
    before: Mapping[str, str] = {}
    for place, context in enumerate(scenario.contexts()):
        operations, new = telling.turn(place, context)
        gone = " ".join(before[formula] for formula in before if formula not in context)
        text = f"No longer true: {gone} Now true: {new}" if gone else new
        utterances.append(
            Utterance(
                conversation_id=scenario.id,
                utterance_id=f"u{place}",
                speaker=SPEAKER,
                text=text.strip() or "Nothing changes.",
                at=moment(place),
                operations=tuple(operations),
            )
        )
        before = context
    return Told(tuple(utterances), telling.formulas)
