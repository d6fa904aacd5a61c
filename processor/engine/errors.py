"""The engine's two kinds of failure.

Bad input is a value: a `Refusal` of one operation, or a refused event. A broken invariant raises
`BrokenInvariantError`, because no state can be trusted after it.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.log import RejectionCode


class BrokenInvariantError(AssertionError):
    """The engine contradicts itself; the conversation must not be folded any further."""


class UnknownRecordError(LookupError):
    """A query names a record the conversation does not have; `record` is its id."""

    def __init__(self, record: str) -> None:
        super().__init__(f"no record {record!r} in this conversation")
        self.record = record


class Refusal(NamedTuple):
    """Why an operation is refused: the code, a sentence for people, and the ids involved."""

    code: RejectionCode
    reason: str
    records: tuple[str, ...]
