"""MemoryAgentBench, FactConsolidation: a stream of numbered facts, some of which replace others.

The file is a JSON object whose `data` lists items with a `context`: a heading, then one numbered
fact a line, each in one of a fixed set of sentence templates. Items that share a context (the
single-hop and the multi-hop questions do) are one stream, and a stream is one conversation.

Fact n is record `fn`: an observation with one evidence atom, its entity and attribute taken from
the sentence. The newest value of a slot counts, so a fact revises every standing fact of its slot
that gives another value; one that gives the same value again revises nothing.

Source: Hu et al., MemoryAgentBench, ai-hyz/MemoryAgentBench, split Conflict_Resolution.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

from replay.evaluate.adapters import AdapterError, Published, moment, parse_published, run_command
from schemas.evidence import Atom, Relation
from schemas.operations import Observe, Operation, Revise
from schemas.utterance import Utterance

SPEAKER = "stream"

TEMPLATES: dict[str, str] = {
    "place of birth": "{x} was born in the city of {y}",
    "place of death": "{x} died in the city of {y}",
    "work location": "{x} worked in the city of {y}",
    "citizenship": "{x} is a citizen of {y}",
    "spouse": "{x} is married to {y}",
    "child": "{x}'s child is {y}",
    "religion": "{x} is affiliated with the religion of {y}",
    "language": "{x} speaks the language of {y}",
    "occupation": "{x} works in the field of {y}",
    "employer": "{x} is employed by {y}",
    "notable work": "{x} is famous for {y}",
    "education": "The univeristy where {x} was educated is {y}",  # upstream's spelling
    "genre": "The type of music that {x} plays is {y}",
    "position played": "{x} plays the position of {y}",
    "sport": "{x} is associated with the sport of {y}",
    "author": "The author of {x} is {y}",
    "performer": "{x} was performed by {y}",
    "creator": "{x} was created by {y}",
    "written language": "{x} was written in the language of {y}",
    "original broadcaster": "The origianl broadcaster of {x} is {y}",  # upstream's spelling
    "developer": "{x} was developed by {y}",
    "manufacturer": "The company that produced {x} is {y}",
    "founder": "{x} was founded by {y}",
    "place of foundation": "{x} was founded in the city of {y}",
    "country of origin": "{x} was created in the country of {y}",
    "headquarters": "The headquarters of {x} is located in the city of {y}",
    "chief executive": "The chief executive officer of {x} is {y}",
    "chairperson": "The chairperson of {x} is {y}",
    "director": "The director of {x} is {y}",
    "head of state": "The name of the current head of state in {x} is {y}",
    "head of government": "The name of the current head of the {x} government is {y}",
    "prime minister": "The Prime Minister of {x} is {y}",
    "capital": "The capital of {x} is {y}",
    "official language": "The official language of {x} is {y}",
    "continent": "{x} is located in the continent of {y}",
}
"""Relation name -> the sentence it is told in; `x` is the subject, `y` the value."""


def _pattern(template: str) -> re.Pattern[str]:
    """The template as a pattern for a whole sentence without its full stop."""
    return re.compile(re.escape(template).replace(r"\{x\}", "(.+)").replace(r"\{y\}", "(.+)"))


_PATTERNS = {relation: _pattern(template) for relation, template in TEMPLATES.items()}
_HEADING = "Here is a list of facts:"
_NUMBERED = re.compile(r"(\d+)\. (.+)\.")


class _Item(Published):
    context: str


class _File(Published):
    data: tuple[_Item, ...]


@final
@dataclass(frozen=True, slots=True)
class Fact:
    """One numbered sentence: `subject` has `value` for `relation`."""

    number: int
    sentence: str
    subject: str
    relation: str
    value: str

    @property
    def record(self) -> str:
        """The id of the fact's record."""
        return f"f{self.number}"

    @property
    def slot(self) -> tuple[str, str]:
        """What the fact gives a value to: subject and relation."""
        return (self.subject, self.relation)


def parse_fact(line: str) -> Fact:
    """Read `12. The capital of Japan is Tokyo.`.

    Raises AdapterError unless the line fits exactly one template: a fact that is skipped or read in
    two ways would make every count that follows wrong.
    """
    numbered = _NUMBERED.fullmatch(line)
    if numbered is None:
        raise AdapterError(f"no numbered fact: {line!r}")
    number, sentence = int(numbered[1]), numbered[2]
    found = [
        Fact(number, f"{sentence}.", match[1], relation, match[2])
        for relation, pattern in _PATTERNS.items()
        if (match := pattern.fullmatch(sentence)) is not None
    ]
    if len(found) != 1:
        readings = ", ".join(fact.relation for fact in found) or "none"
        raise AdapterError(f"fact {number} fits not exactly one template ({readings}): {line!r}")
    return found[0]


def parse_context(context: str) -> tuple[Fact, ...]:
    """The facts of one stream in order. Raises AdapterError for a line that is no fact."""
    lines = [line for line in context.splitlines() if line and line != _HEADING]
    return tuple(parse_fact(line) for line in lines)


def read_contexts(path: Path) -> tuple[str, ...]:
    """The distinct streams of a published file, in order. Raises AdapterError, OSError."""
    stored = parse_published(_File, path.read_bytes(), str(path))
    return tuple(dict.fromkeys(item.context for item in stored.data))


def stream_utterances(facts: tuple[Fact, ...], conversation: str) -> Iterator[Utterance]:
    """One utterance per fact: it observes the fact and revises what the fact replaces."""
    standing: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        slot = standing.setdefault(fact.slot, [])
        replaced = [earlier for earlier in slot if earlier.value != fact.value]
        standing[fact.slot] = [earlier for earlier in slot if earlier.value == fact.value] + [fact]
        yield Utterance(
            conversation_id=conversation,
            utterance_id=f"u{fact.number}",
            speaker=SPEAKER,
            text=fact.sentence,
            at=moment(fact.number),
            operations=_operations(fact, replaced),
        )


def _operations(fact: Fact, replaced: list[Fact]) -> tuple[Operation, ...]:
    older = tuple(earlier.record for earlier in replaced)
    atom = Atom(
        entity=fact.subject,
        attribute=fact.relation,
        value=fact.value,
        relation=Relation.SUPERSEDES if older else None,
        of=older or None,
    )
    observe = Observe(op="observe", record=fact.record, claim=fact.sentence, atoms=(atom,))
    return (observe, *(Revise(op="revise", target=id_, by=fact.record) for id_ in older))


def utterances(path: Path) -> Iterator[Utterance]:
    """The streams of a published file, one conversation each: `memab-fc-0`, `memab-fc-1`, ..."""
    for position, context in enumerate(read_contexts(path)):
        yield from stream_utterances(parse_context(context), f"memab-fc-{position}")


if __name__ == "__main__":
    sys.exit(run_command(utterances, sys.argv[1:]))
