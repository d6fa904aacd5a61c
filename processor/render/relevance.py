"""Which records and questions a text is likely to speak of, the likeliest first.

A pure function of the state and the text, in whole numbers, so the order is the same everywhere.
It looks at every claim once and remembers nothing: a cache would have to be bounded by the sizes of
claims, and looking is cheap (see `tests/benchmarks`).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

from processor.engine.record import Record
from processor.engine.state import Problem, State
from schemas.derived import Standing

Subject: TypeAlias = Record | Problem
"""A record, or a problem that is a question."""

TERMS_MAX = 32
RECENT_TURNS = 4
_STEM_CHARS = 6
"""Endings are cut off: "retries" and "retry" have "retr" and more in common."""
_MENTIONED = 1_000_000
_PER_TERM = 10
_OPEN, _CHANGED, _CONTESTED, _DECIDED = 40, 30, 30, 20
_NEWEST = 10

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@'/-]*")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]{2,}")
"""Scripts that put no blanks between words: two characters stand for a word."""


def ranked(state: State, turn: int, text: str, most: int) -> list[Subject]:
    """The subjects that matter most to a text said after `turn`, at most this many.

    First those it names by id, then those whose claim shares rare words with it; questions that are
    open, records that changed lately, that are in doubt or dispute, that were decided, and the
    newest get something on top.
    """
    questions = [problem for problem in state.problems.values() if problem.is_question]
    subjects: list[Subject] = [*state.records.values(), *questions]
    scores = _lexical(subjects, text)
    named = _named(text)
    unexplained = {id_ for id_, problem in state.problems.items() if not problem.is_question}
    count = max(len(subjects), 1)
    for index, subject in enumerate(subjects):
        score = scores[index]
        if isinstance(subject, Problem):
            place = subject.turn * _NEWEST // max(turn, 1)
            score += _OPEN if state.is_open(subject) else 0
        else:
            place = index * _NEWEST // count
            score += _record_score(state, subject, turn)
            if subject.id in unexplained and state.is_open(state.problems[subject.id]):
                score += _OPEN
        if subject.id in named:
            score += _MENTIONED
        scores[index] = score + place
    best = heapq.nlargest(most, range(len(subjects)), key=lambda index: (scores[index], index))
    return [subjects[index] for index in best]


def _record_score(state: State, record: Record, turn: int) -> int:
    score = 0
    if record.trail and record.trail[-1].turn > turn - RECENT_TURNS:
        score += _CHANGED
    if record.standing is Standing.WEAKENED or record.id in state.disputed:
        score += _CONTESTED
    elif record.is_decision:
        score += _DECIDED
    return score


def _lexical(subjects: Sequence[Subject], text: str) -> list[int]:
    """For each subject what it shares with the text, rare words counting more."""
    scores = [0] * len(subjects)
    claims = [
        (subject.text if isinstance(subject, Problem) else subject.claim).casefold()
        for subject in subjects
    ]
    for term in terms(text):
        found = [index for index, claim in enumerate(claims) if term in claim]
        if not found or len(found) * 3 > len(claims) > 30:
            continue  # what every third claim holds tells none of them apart
        weight = _PER_TERM * (len(claims) // len(found)).bit_length()
        for index in found:
            scores[index] += weight
    return scores


def terms(text: str) -> tuple[str, ...]:
    """The words of a text to look for, without their endings, the longest first."""
    folded = text.casefold()
    pairs = (
        run[start : start + 2] for run in _UNSPACED.findall(folded) for start in range(len(run) - 1)
    )
    words = (
        word if word.isdigit() else word[:_STEM_CHARS]
        for word in _WORD.findall(_UNSPACED.sub(" ", folded))
        if len(word) > 3 or not word.isalpha()
    )
    found = dict.fromkeys(chain(words, pairs))
    return tuple(sorted(found, key=lambda term: (-len(term), term))[:TERMS_MAX])


def _named(text: str) -> dict[str, None]:
    """Everything in a text that may be an id, as it stands and without what may follow it."""
    found: dict[str, None] = {}
    for written in _ID.findall(text):
        bare = written.rstrip("._:@'/-")
        for id_ in (written, bare, written.partition("'")[0], bare.lower()):
            found[id_] = None
    return found
