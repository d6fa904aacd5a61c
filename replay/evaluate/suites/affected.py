"""How an answer to a retraction query is scored, and the two queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from replay.evaluate.benchmark import Scores

CLOSURE, ONE_STEP = "closure", "one_step"


def affected_scores(answer: Collection[str], gold: Collection[str]) -> Scores:
    """Whether the answer is the gold set, how much of it is found, and what is there beside it.

    `over_retraction` counts the records that would be retired and should stand.
    """
    found = _count(answer, gold)
    return {
        "exact": float(found == len(gold) == len(answer)),
        "recall": found / len(gold) if gold else 1.0,
        "over_retraction": float(len(answer) - found),
    }


def _count(answer: Iterable[str], gold: Collection[str]) -> int:
    return sum(id_ in gold for id_ in answer)
