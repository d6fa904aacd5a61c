"""Train the learned tier classifier, and say how it compares.

    python -m replay.evaluate.tier_classifier COEFFICIENTS [STREAMS]

STREAMS is JSON Lines: `{"tier": "refines", "atoms": [...]}`, the atoms of one key in the order of
the log, each with an atom's fields and, if known, `source`, `turn` and `text`; every fifth stream
is kept back for the figures. Without STREAMS it learns from streams of our own, and the figures are
for others with another vocabulary. Beside it stand the rules, the words (TF-IDF and a linear SVC)
and the tier that is most frequent. Needs the extra `evaluate`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from processor.evidence.tiers import TIERS, LearnedTiers, Tier, numbers_of, structure_of, tier_of
from replay.evaluate.extra import ExtraMissing, needed
from replay.evaluate.fitting import fit
from replay.evaluate.tier_streams import (
    LEARNED_ON,
    MEASURED_ON,
    StreamsError,
    TierStream,
    made_streams,
    read_streams,
)
from schemas.wire import canonical_bytes

EXIT_BAD_INPUT = 2
KEPT_BACK = 5
"""Every fifth stream of a file is for the figures."""
EACH = 250
RULES, STRUCTURE, WORDS, MAJORITY = "rules", "structure", "words", "majority"
ARMS = (RULES, STRUCTURE, WORDS, MAJORITY)
Teller: TypeAlias = Callable[[TierStream], Tier]


def train(streams: Sequence[TierStream]) -> LearnedTiers:
    """Fit the weights; the same streams give the same ones. Raises ExtraMissing, StreamsError."""
    labels = [TIERS.index(stream.tier) for stream in streams]
    if len(dict.fromkeys(labels)) < 2:
        raise StreamsError("the streams to learn from have fewer than two tiers")
    seen = [numbers_of(structure_of(stream.facts)) for stream in streams]
    return LearnedTiers(fit(seen, labels, len(TIERS)))


def tellers(streams: Sequence[TierStream]) -> dict[str, Teller]:
    """Every way to tell a tier, learned from these streams where it learns. Raises ExtraMissing."""
    learned = train(streams)
    frequent = Counter(stream.tier for stream in streams).most_common(1)[0][0]
    return {
        RULES: lambda stream: tier_of(structure_of(stream.facts)),
        STRUCTURE: lambda stream: learned.tier(structure_of(stream.facts)),
        WORDS: _by_words(streams),
        MAJORITY: lambda stream: frequent,
    }


def _by_words(streams: Sequence[TierStream]) -> Teller:
    vectors = needed("sklearn.feature_extraction.text").TfidfVectorizer(ngram_range=(1, 2))
    seen = vectors.fit_transform([stream.text for stream in streams])
    model = needed("sklearn.svm").LinearSVC(random_state=0)
    model.fit(seen, [stream.tier.value for stream in streams])
    return lambda stream: Tier(str(model.predict(vectors.transform([stream.text]))[0]))


def f1_by_tier(gold: Sequence[Tier], told: Sequence[Tier]) -> dict[Tier, float]:
    """F1 of each tier that the gold labels have."""
    pairs = Counter(zip(gold, told, strict=True))
    found: dict[Tier, float] = {}
    for tier in TIERS:
        right = pairs[tier, tier]
        wanted, said = gold.count(tier), told.count(tier)
        if wanted:
            found[tier] = 2 * right / (wanted + said)
    return found


def macro_f1(gold: Sequence[Tier], told: Sequence[Tier]) -> float:
    """The mean of F1 over the tiers that the gold labels have."""
    found = f1_by_tier(gold, told)
    return sum(found.values()) / len(found)


def table(ways: dict[str, Teller], streams: Sequence[TierStream]) -> str:
    """Accuracy, macro-F1 and the F1 of each tier, as Markdown."""
    gold = [stream.tier for stream in streams]
    there = [tier for tier in TIERS if tier in gold]
    heads = " | ".join(tier.value.replace("_", " ") for tier in there)
    lines = [f"| classifier | streams | accuracy | macro-F1 | {heads} |"]
    lines.append("|" + "---|" * (4 + len(there)))
    for name, tell in ways.items():
        told = [tell(stream) for stream in streams]
        right = sum(map(Tier.__eq__, gold, told)) / len(gold)
        f1 = f1_by_tier(gold, told)
        each = " | ".join(f"{f1[tier]:.3f}" for tier in there)
        lines.append(
            f"| {name} | {len(gold)} | {right:.3f} | {macro_f1(gold, told):.3f} | {each} |"
        )
    return "\n".join(lines)


def own_streams(seed: int = 0) -> tuple[tuple[TierStream, ...], tuple[TierStream, ...]]:
    """Streams of our own to learn from, and others to be measured on."""
    return made_streams(2 * seed, EACH, LEARNED_ON), made_streams(2 * seed + 1, EACH, MEASURED_ON)


def main(arguments: list[str]) -> int:
    """Train, save, print the figures. Returns the exit status."""
    if len(arguments) not in (1, 2):
        print(
            "usage: give where the coefficients go, and a file of streams or none", file=sys.stderr
        )
        return EXIT_BAD_INPUT
    try:
        given = read_streams(Path(arguments[1])) if arguments[1:] else ()
        kept_back = given[KEPT_BACK - 1 :: KEPT_BACK]
        learned_on = tuple(each for place, each in enumerate(given, 1) if place % KEPT_BACK)
        if arguments[1:] and not kept_back:
            raise StreamsError(f"{arguments[1]}: fewer than {KEPT_BACK} streams")
        learned_on, kept_back = (learned_on, kept_back) if given else own_streams()
        shown = table(tellers(learned_on), kept_back)
        Path(arguments[0]).write_bytes(canonical_bytes(train(learned_on).to_values()) + b"\n")
    except (StreamsError, ExtraMissing, OSError) as unusable:
        print(unusable, file=sys.stderr)
        return EXIT_BAD_INPUT
    print(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
