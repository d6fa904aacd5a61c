"""Which records and questions a text is likely to speak of, the likeliest first.

A pure function of the state and the text, in whole numbers, so the order is the same everywhere.
It looks at every claim and remembers nothing: a cache would have to be bounded by the sizes of
claims, and looking is cheap (`tests/benchmarks/test_prompts.py`).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from processor.engine.record import Record, RecordKind
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
    records = list(state.records.values())
    questions = [problem for problem in state.problems.values() if problem.is_question]
    subjects: list[Subject] = [*records, *questions]
    if not subjects:
        return []
    scores = _lexical(subjects, text)
    for index, points in chain(
        _of_records(state, records, turn),
        _of_questions(state, questions, turn, len(records)),
        _of_ids(subjects, text),
    ):
        scores[index] += points
    count = len(subjects)
    order = heapq.nlargest(most, (score * count + place for place, score in enumerate(scores)))
    return [subjects[key % count] for key in order]


Points: TypeAlias = Iterator[tuple[int, int]]
"""Places in a list of subjects, and what is to be added to the scores there."""


def _of_records(state: State, records: Sequence[Record], turn: int) -> Points:
    """What became of records, and how new they are."""
    since = turn - RECENT_TURNS
    for place, record in enumerate(records):
        if record.trail and record.trail[-1].turn > since:
            yield place, _CHANGED
    for place, record in enumerate(records):
        if record.standing is Standing.WEAKENED:
            yield place, _CONTESTED
        elif record.standing is Standing.RESOLVED or record.kind is RecordKind.DECISION:
            yield place, _DECIDED
    for id_ in state.disputed:
        yield state.records[id_].position, _CONTESTED
    for problem in state.problems.values():
        if not problem.is_question and state.is_open(problem):
            yield state.records[problem.id].position, _OPEN
    for place in range(len(records)):
        yield place, place * _NEWEST // len(records)


def _of_questions(state: State, questions: Sequence[Problem], turn: int, first: int) -> Points:
    """Whether questions are open, and how new they are; they come after the records."""
    for place, question in enumerate(questions, first):
        newness = question.turn * _NEWEST // max(turn, 1)
        yield place, newness + (_OPEN if state.is_open(question) else 0)


def _of_ids(subjects: Sequence[Subject], text: str) -> Points:
    """Whether the text names them."""
    named = ids_in(text)
    for place, subject in enumerate(subjects):
        if subject.id in named:
            yield place, _MENTIONED


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


def names(text: str, phrase: str) -> bool:
    """Whether the phrase stands in the text as words of its own, both written in one way."""
    if phrase not in text:
        return False
    whole = rf"(?<![^\W_]){re.escape(phrase)}(?![^\W_])"
    return bool(_UNSPACED.search(phrase) or re.search(whole, text))


def ids_in(text: str) -> dict[str, None]:
    """Everything in a text that may be an id, as it stands and without what may follow it."""
    found: dict[str, None] = {}
    for written in _ID.findall(text):
        bare = written.rstrip("._:@'/-")
        for id_ in (written, bare, written.partition("'")[0], bare.lower()):
            found[id_] = None
    return found
