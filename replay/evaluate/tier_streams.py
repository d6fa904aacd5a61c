"""Labelled streams for the conflict tiers: our own, made by a seed, or read from a file.

Ours are made so that structure alone does not decide everything, as in life: every tenth atom is
lost, a source may take a value over without anybody's confirming it (which is no conflict, and
looks like one), and a value may narrow in words that say nothing of it. The words for entities
and values differ between the two vocabularies, one to learn from and one to be measured on; those
that say what an atom does are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, NamedTuple, final

from pydantic import Field

from processor.evidence.fact import Fact, Told, fact_of
from processor.evidence.tiers import TIERS, Tier
from schemas.contract import Contract, Turn
from schemas.evidence import Atom
from schemas.ids import AgentId
from schemas.wire import WireError, decode_contract

LOST = 0.1
"""The share of atoms that an extractor misses."""
UNSEEN = 0.2
"""The share of streams of a tier whose structure looks like another one's."""
CUED = 0.5
"""The share of streams whose last words say what the last atom does."""
_CUES = {
    Tier.MONOTONIC: ("it is now", "since today"),
    Tier.REVERTED_REVERT: ("set back to", "it is again"),
    Tier.CROSS_SOURCE_CONFLICT: ("I still read", "no, it is"),
    Tier.REFINES: ("to be exact", "more precisely"),
}


@final
class TierStream(NamedTuple):
    """The facts of one key in the order of the log, what was said in words, and the tier."""

    id: str
    tier: Tier
    facts: tuple[Fact, ...]
    text: str


@final
class Vocabulary(NamedTuple):
    """What a stream is about: entities, values, what narrows a value, other words for it."""

    entities: tuple[str, ...]
    values: tuple[str, ...]
    narrower: tuple[str, ...]
    unrelated: tuple[str, ...]


LEARNED_ON = Vocabulary(
    ("connection pool", "rate limit", "retry budget", "cache"),
    ("30 s", "60 s", "90 s", "2 min", "5 min"),
    ("on linux", "for guests", "at night"),
    ("half a minute", "as the vendor says", "whatever the proxy has"),
)
MEASURED_ON = Vocabulary(
    ("harbour office", "night ferry", "pilot station", "customs shed"),
    ("Bergen", "Stavanger", "Turku", "Gdynia", "Kiel"),
    ("pier 3", "east side", "upper deck"),
    ("by the old lighthouse", "where the tugs lie", "behind the silo"),
)


class AtomLine(Atom):
    """One atom of a stored stream."""

    source: AgentId = "source"
    turn: Turn | None = None
    text: str = Field(default="", max_length=4_096)


class StreamLine(Contract):
    """One labelled stream of a file."""

    tier: Tier
    atoms: Annotated[tuple[AtomLine, ...], Field(min_length=1, max_length=1_024)]


class StreamsError(ValueError):
    """A file that holds no labelled streams; the message names the line."""


def made_streams(seed: int, each: int, vocabulary: Vocabulary) -> tuple[TierStream, ...]:
    """So many streams of each tier, by the seed."""
    random = Random(seed)
    return tuple(
        _stream(f"{tier} {number}", tier, random, vocabulary)
        for number in range(each)
        for tier in TIERS
    )


def read_streams(path: Path) -> tuple[TierStream, ...]:
    """The streams of a file of JSON Lines. Raises StreamsError, OSError."""
    found: list[TierStream] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            try:
                read = decode_contract(StreamLine, line)
            except WireError as invalid:
                raise StreamsError(f"{path}:{number}: {invalid}") from invalid
            facts = tuple(_fact(atom, place) for place, atom in enumerate(read.atoms))
            if len(dict.fromkeys(fact.key for fact in facts)) > 1:
                raise StreamsError(f"{path}:{number}: atoms: they have several keys")
            text = " ".join(atom.text or atom.value for atom in read.atoms)
            found.append(TierStream(f"line {number}", read.tier, facts, text))
    return tuple(found)


def text_of(facts: Sequence[Fact]) -> str:
    """A stream in words, where nothing else is known of them."""
    return " ".join(f"{fact.entity} {fact.attribute} {fact.value}." for fact in facts)


def _stream(name: str, tier: Tier, random: Random, words: Vocabulary) -> TierStream:
    told = _told(tier, random, words)
    kept = [each for each in told if random.random() >= LOST] or told[-1:]
    entity = random.choice(words.entities)
    facts = tuple(
        _fact(AtomLine(entity=entity, attribute="setting", value=value, source=source), place)
        for place, (value, source) in enumerate(kept)
    )
    said = [f"{source}: the {entity} has {value}." for value, source in kept]
    if random.random() < CUED:
        said.append(f"{kept[-1][1]}: {random.choice(_CUES[tier])} {kept[-1][0]}.")
    return TierStream(name, tier, facts, " ".join(said))


def _told(tier: Tier, random: Random, words: Vocabulary) -> list[tuple[str, str]]:
    """Values and who told them."""
    one, other = random.sample(("ann", "bob", "eve", "kim"), 2)
    values = random.sample(words.values, random.randint(2, 4))
    unseen = random.random() < UNSEEN
    told = [(value, one) for value in values]
    match tier:
        case Tier.MONOTONIC:
            taken_over = [(values[-1], other)] if unseen else [(values[-1], one)]
            repeated = [(values[-1], other)] if random.random() < 0.3 else []
            return [*told[:-1], *taken_over, *repeated]
        case Tier.REVERTED_REVERT:
            return [*told, (values[0], other if unseen else one)]
        case Tier.CROSS_SOURCE_CONFLICT:
            last = random.choice(values[:-1])
            agreed = [(value, other) for value in values[:1]] if unseen else []
            return [*told, *agreed, (last if unseen else random.choice(words.unrelated), other)]
        case Tier.REFINES:
            finer = random.choice(words.unrelated if unseen else words.narrower)
            narrowed = finer if unseen else f"{values[-1]}, {finer}"
            return [*told[-random.randint(1, 2) :], (narrowed, random.choice((one, other)))]


def _fact(atom: AtomLine, place: int) -> Fact:
    turn = place + 1 if atom.turn is None else atom.turn
    return fact_of(atom, Told(f"r{place}", atom.source, "user", turn, turn), place)
