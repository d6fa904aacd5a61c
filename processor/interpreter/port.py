"""What an interpreter is: it reads the operations out of an utterance's text.

Utterances that bring their operations need none. Two kinds of failure stay apart: an utterance that
cannot be read is an answer, `Unreadable`; an endpoint that cannot be reached raises, because it
says nothing about the utterance.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias, final

from processor.engine.conversation import Conversation
from schemas.log import Interpretation, Rejection
from schemas.operations import Operation
from schemas.utterance import CandidateClaim, Utterance


@final
class Reading(NamedTuple):
    """What a statement says as operations, or a candidate as claims, and who read it."""

    provenance: Interpretation
    operations: tuple[Operation, ...] = ()
    claims: tuple[CandidateClaim, ...] | None = None


@final
class Unreadable(NamedTuple):
    """The utterance is at fault: asked again, the interpreter would say the same."""

    provenance: Interpretation
    reason: str


Interpreted: TypeAlias = Reading | Unreadable


@final
class Refused(NamedTuple):
    """A reading that is refused in part, for the interpreter to correct.

    `rejections` name what the state refuses by its place in the reading's operations. What a model
    gave that was no operation is in the rejections of the reading's provenance.
    """

    reading: Reading
    rejections: tuple[Rejection, ...]


class EndpointUnavailable(Exception):  # noqa: N818 - it says what is wrong
    """The endpoint is at fault: connection, time-out, too many requests, server error.

    `retry_after_s` is how long the endpoint asked to be left alone, if it did; `spent` is what was
    asked for the same utterance before, and answered.
    """

    def __init__(self, problem: str, retry_after_s: float | None = None) -> None:
        super().__init__(problem)
        self.retry_after_s = retry_after_s
        self.spent: Interpretation | None = None


class Interpreter(Protocol):
    """Reads utterances; one serves all conversations of a worker."""

    async def interpret(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """Read an utterance in its conversation, which is not changed.

        `refused` is the last reading of this utterance where it was refused in part. Raises
        EndpointUnavailable.
        """
