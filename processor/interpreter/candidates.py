"""Which records a claim names by its words alone: told without a model, or not at all.

Two claims are the same where they differ in nothing but case, white space, the form of quotation
marks, dashes and composed letters, and the mark at the end. A question mark stays: to ask is not to
claim. Inside a claim every mark counts, since "1.5" is not "15".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from processor.engine.record import Record
from processor.engine.state import State
from schemas.utterance import CandidateClaim

_SENTENCE_END = re.compile(r"(?<=[.!?\u2026\u3002\uff01\uff1f])\s+")
_ONE_FORM = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    }
)
_AT_THE_END = " .!;,:\u2026\u3002\uff01\"'"


def normalised(claim: str) -> str:
    """The form in which claims are compared."""
    if not claim.isascii():  # others have one form as they are, and every claim is compared
        claim = unicodedata.normalize("NFC", claim).translate(_ONE_FORM)
    return " ".join(claim.casefold().split()).lstrip("\"'").rstrip(_AT_THE_END)


def same_claims(state: State, claims: Iterable[str]) -> dict[str, list[Record]]:
    """For each claim the records that make the very claim, in the order of their introduction."""
    wanted: dict[str, list[Record]] = {normalised(claim): [] for claim in claims}
    wanted.pop("", None)
    if wanted:
        for record in state.records.values():
            found = wanted.get(normalised(record.claim))
            if found is not None:
                found.append(record)
    return wanted


def match_draft(state: State, text: str) -> tuple[CandidateClaim, ...] | None:
    """The claims of a draft of which every sentence is the claim of exactly one record.

    None for any other draft: what its words assert is not for us to guess.
    """
    whole = text.strip()
    pieces = _SENTENCE_END.split(whole)
    same = same_claims(state, [whole, *pieces])
    for sentences in ([whole], pieces):
        matches = [same.get(normalised(sentence), []) for sentence in sentences]
        if all(len(records) == 1 for records in matches):
            return tuple(
                CandidateClaim(text=sentence, record=record.id)
                for sentence, (record,) in zip(sentences, matches, strict=True)
            )
    return None


def match_claims(state: State, claims: tuple[CandidateClaim, ...]) -> tuple[CandidateClaim, ...]:
    """The claims that somebody read in a draft: one that a single record makes rests on that.

    Where several records make it, or none, whoever read it has the word.
    """
    same = same_claims(state, [claim.text for claim in claims])
    return tuple(_matched(claim, same.get(normalised(claim.text), [])) for claim in claims)


def _matched(claim: CandidateClaim, records: list[Record]) -> CandidateClaim:
    if len(records) != 1 or records[0].id in claim.associated():
        return claim
    return CandidateClaim(text=claim.text, record=records[0].id)
