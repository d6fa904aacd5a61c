"""Train the learned scorer on labelled pairs, and say how it compares with the rules.

    python -m replay.evaluate.relation_scorer PAIRS COEFFICIENTS

PAIRS is JSON Lines: `{"old": {...}, "new": {...}, "relation": "refines"}`, where old and new hold
an atom's fields and, if known, `record`, `source`, `role` and `turn`. Every fifth pair is kept back
for the figures. Needs the extra `evaluate`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, final

import orjson
from pydantic import Field

from processor.evidence.fact import Fact, Told, fact_of
from processor.evidence.learned import RELATIONS, LearnedScorer, features
from processor.evidence.scorer import RULES
from replay.evaluate.extra import ExtraMissing
from replay.evaluate.fitting import fit
from schemas.contract import Contract, Turn
from schemas.evidence import Atom, Relation
from schemas.ids import AgentId, RecordId, RoleName
from schemas.wire import WireError, canonical_bytes, decode_contract

EXIT_BAD_INPUT = 2
KEPT_BACK = 5
"""Every fifth pair is for the figures."""


class Side(Atom):
    """One side of a pair."""

    record: RecordId | None = None
    source: AgentId = "source"
    role: RoleName = "user"
    turn: Turn | None = None


class PairLine(Contract):
    """One labelled pair."""

    old: Side
    new: Side
    relation: Relation = Field()


@final
class Pair(NamedTuple):
    """Two facts of one key and how the newer stands to the older."""

    old: Fact
    new: Fact
    relation: Relation


@final
class Confusion(NamedTuple):
    """How a scorer did, as the paper reports it; a rate is None if nothing was asked of it."""

    pairs: int
    accuracy: float
    refinement_recall: float | None
    false_contradiction: float | None
    missed_supersession: float | None


class PairsError(ValueError):
    """A file that holds no labelled pairs; the message names the line."""


def read_pairs(path: Path) -> tuple[Pair, ...]:
    """The pairs of a file. Raises PairsError, OSError."""
    pairs: list[Pair] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            try:
                read = decode_contract(PairLine, line)
            except WireError as invalid:
                raise PairsError(f"{path}: line {number}: {invalid}") from invalid
            pairs.append(Pair(_fact(read.old, 0), _fact(read.new, 1), read.relation))
    return tuple(pairs)


def train(pairs: Sequence[Pair]) -> LearnedScorer:
    """Fit the weights; the same pairs give the same ones. Raises ExtraMissing and PairsError."""
    labels = [RELATIONS.index(pair.relation) for pair in pairs]
    if len(dict.fromkeys(labels)) < 2:
        raise PairsError("the pairs to learn from have fewer than two relations")
    seen = [features(pair.new, pair.old) for pair in pairs]
    return LearnedScorer(fit(seen, labels, len(RELATIONS)))


def confusion(pairs: Sequence[Pair], relation: Callable[[Fact, Fact], Relation]) -> Confusion:
    """How often a scorer is right, and the three confusions that matter to a ledger."""
    told = [(pair.relation, relation(pair.new, pair.old)) for pair in pairs]

    def rate(of: Callable[[Relation], bool], hit: Callable[[Relation], bool]) -> float | None:
        asked = [got for gold, got in told if of(gold)]
        return sum(map(hit, asked)) / len(asked) if asked else None

    return Confusion(
        len(told),
        sum(gold is got for gold, got in told) / max(1, len(told)),
        rate(lambda gold: gold is Relation.REFINES, lambda got: got is Relation.REFINES),
        rate(
            lambda gold: gold is not Relation.CONTRADICTS, lambda got: got is Relation.CONTRADICTS
        ),
        rate(lambda gold: gold is Relation.SUPERSEDES, lambda got: got is not Relation.SUPERSEDES),
    )


def by_rules(new: Fact, old: Fact) -> Relation:
    """What a row makes of the pair by the rules: agreement first, then the scorer."""
    return Relation.SAME_STATE if new.agrees(old) else RULES.relation(new, old)


def table(learned: LearnedScorer, pairs: Sequence[Pair]) -> str:
    """The figures of both scorers side by side, as Markdown."""
    rows = [
        ("rules", confusion(pairs, by_rules)),
        ("learned", confusion(pairs, learned.relation)),
    ]
    figures = ("accuracy", "refinement recall", "false contradiction", "missed supersession")
    lines = [f"| scorer | pairs | {' | '.join(figures)} |", "|---|---|---|---|---|---|"]
    for name, found in rows:
        rates = (_rate(each) for each in found[1:])
        lines.append(f"| {name} | {found.pairs} | {' | '.join(rates)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Train, save, print the figures. Returns the exit status."""
    if len(arguments) != 2:
        print("usage: give the file of pairs and where the coefficients go", file=sys.stderr)
        return EXIT_BAD_INPUT
    try:
        pairs = read_pairs(Path(arguments[0]))
        kept_back = pairs[KEPT_BACK - 1 :: KEPT_BACK]
        learned = train([p for place, p in enumerate(pairs, 1) if place % KEPT_BACK])
        Path(arguments[1]).write_bytes(canonical_bytes(learned.to_values()) + b"\n")
    except (PairsError, ExtraMissing, OSError) as unusable:
        print(unusable, file=sys.stderr)
        return EXIT_BAD_INPUT
    print(table(learned, kept_back))
    return 0


def read_scorer(path: Path) -> LearnedScorer:
    """The scorer of a file. Raises OSError, and ValueError that says what is wrong."""
    return LearnedScorer.from_values(orjson.loads(path.read_bytes()))


def _fact(told: Side, place: int) -> Fact:
    turn = place + 1 if told.turn is None else told.turn
    record = told.record or f"r{place}"
    return fact_of(told, Told(record, told.source, told.role, turn, turn), place)


def _rate(value: object) -> str:
    return "-" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
