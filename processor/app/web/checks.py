"""The gate: a draft is checked, through the log or on the state as it is.

A draft that is recorded is answered from the fold of its event, so what the client was told is what
the log says; asked again, it is answered from the store. A request that runs out of time is told
`pending` and leaves its draft where it is, in the conversation's lane.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import final

from processor.app.interpret import (
    DeadLetterClass,
    Unusable,
    needs_reading,
    utterance_digest,
)
from processor.app.reduce_agent import Folded
from processor.app.web.asked import Asked, Deadline
from processor.app.web.limits import Slot
from processor.app.web.problem_details import Kind, ProblemRaised, rebalancing
from processor.engine.conversation import Conversation
from processor.engine.derive import answer_candidate
from processor.engine.verify import verify_claims
from processor.interpreter.port import Reading
from schemas.derived import Outcome, VerdictEvent, VerdictReason
from schemas.http import WAIT_MS_DEFAULT, CheckAnswer, CheckRequest, overall
from schemas.utterance import CandidateClaim, Utterance, UtteranceKind
from schemas.wire import WireError, canonical_bytes, canonical_content, decode_contract

HEAVY = 20_000
"""Claims times records, or ids in an answer: beyond that, another thread does the work."""

Claims = tuple[CandidateClaim, ...] | None


async def check_bytes(asked: Asked, request: CheckRequest, slot: Slot) -> bytes:
    """The same as JSON; what is large is written in another thread."""
    answer = await check(asked, request, slot)
    if sum(len(verdict.support) for verdict in answer.verdicts) <= HEAVY:
        return canonical_bytes(answer)
    return await asyncio.to_thread(canonical_bytes, answer)


async def check(asked: Asked, request: CheckRequest, slot: Slot) -> CheckAnswer:
    """Answer a check. Raises ProblemRaised, and EpochEnded if the conversation moves away."""
    deadline = Deadline(request.wait_ms)
    drafted = _Draft(asked, request, _utterance(asked, request))
    if not await asked.is_folded(request.after, deadline):
        return drafted.pending()
    if request.record:
        return await drafted.record(deadline, slot)
    return await drafted.evaluate(deadline)


def pending_elsewhere(tenant_id: str, conversation_id: str, body: bytes) -> tuple[float, bytes]:
    """How many seconds the owner may take for a check, and the answer if it takes longer.

    The answer is empty where there is none: for a draft that the owner was to name.
    """
    try:
        request = decode_contract(CheckRequest, body)
    except WireError:
        return WAIT_MS_DEFAULT / 1_000, b""  # the owner says what is wrong with it
    seconds = request.wait_ms / 1_000
    if request.candidate_id is None and request.record:
        return seconds, b""
    answer = CheckAnswer(
        tenant_id=tenant_id,
        conversation_id=conversation_id,
        candidate_id=request.candidate_id or _new_id(request),
        outcome=Outcome.PENDING,
        reason=VerdictReason.NOT_FOLDED_YET,
        recorded=False,
        verdicts=(),
    )
    return seconds, canonical_bytes(answer)


def _utterance(asked: Asked, request: CheckRequest) -> Utterance:
    """The draft as an utterance, as it would come over Kafka."""
    return Utterance(
        tenant_id=asked.tenant_id,
        conversation_id=asked.conversation_id,
        utterance_id=request.candidate_id or _new_id(request),
        speaker=request.speaker,
        role=request.role,
        text=request.text,
        at=request.at or datetime.now(UTC),
        kind=UtteranceKind.CANDIDATE,
        claims=request.claims,
    )


def _new_id(request: CheckRequest) -> str:
    """A new id for a draft that is recorded; else one that is the same for the same draft."""
    if request.record:
        return f"draft-{uuid.uuid4().hex}"
    content = canonical_content([request.text, request.claims])
    return f"draft-{hashlib.sha256(content).hexdigest()[:32]}"


@final
@dataclass(frozen=True)
class _Draft:
    """One request, and the utterance that it stands for."""

    asked: Asked
    request: CheckRequest
    utterance: Utterance

    def pending(self) -> CheckAnswer:
        """Not folded in time."""
        return self._answer(Outcome.PENDING, (), reason=VerdictReason.NOT_FOLDED_YET)

    async def record(self, deadline: Deadline, slot: Slot) -> CheckAnswer:
        """Append, and answer from the fold; `slot` is held until the draft has left the lane."""
        asked, utterance = self.asked, self.utterance
        if utterance.utterance_id in (await self._conversation()).utterances:
            return await self._recorded()
        with asked.conversations.watching(
            asked.tenant_id, asked.conversation_id, utterance.utterance_id
        ) as folded:
            appended = asked.conversations.append(asked.owner, utterance)
            slot.hold_for(appended)
            if not await deadline.first([folded, appended]):
                return self.pending()
            if folded.done():
                return self._from(folded.result())
        letter = appended.result()
        if letter is None or letter.dead_letter_class is DeadLetterClass.ID_REUSED:
            return await self._recorded()
        raise _refused(letter)

    async def _conversation(self) -> Conversation:
        """The live conversation. Raises ProblemRaised if there is none to be seen."""
        asked = self.asked
        found = await asked.conversations.find(asked.owner, asked.tenant_id, asked.looked_for)
        if found is None:
            raise ProblemRaised(Kind.NO_CONVERSATION)
        return found

    async def _recorded(self) -> CheckAnswer:
        """The answer that the log has already."""
        asked = self.asked
        found = await asked.conversations.recorded(
            asked.tenant_id, asked.conversation_id, self.utterance.utterance_id
        )
        if found is None:  # the store was thrown away for another log
            raise rebalancing()
        return self._from(found)

    def _from(self, folded: Folded) -> CheckAnswer:
        """The answer of an event, if it is of this very draft; when it was said is not asked."""
        said = self.utterance
        if self.request.at is None:
            said = said.model_copy(update={"at": folded.event.at})
        if utterance_digest(said) != folded.event.utterance.digest:
            raise ProblemRaised(Kind.ID_REUSED, place="candidate_id")
        verdicts = tuple(event for event in folded.derived if isinstance(event, VerdictEvent))
        return self._answer(overall(verdicts), verdicts, recorded=True)

    async def evaluate(self, deadline: Deadline) -> CheckAnswer:
        """Check on the state as it is, and leave no trace."""
        conversation = await self._conversation()
        claims: Claims = self.request.claims
        if needs_reading(self.utterance):
            read = await self._read(deadline)
            if read is None:
                return self.pending()
            claims, conversation = read[0], await self._conversation()
        if len(claims or ()) * len(conversation.state.records) <= HEAVY:
            verdicts = self._verdicts(conversation, claims)
        else:
            asked = self.asked
            async with asked.copying:
                copied = await asked.conversations.copied(
                    asked.tenant_id,
                    asked.conversation_id,
                    None,
                    lambda copy: self._verdicts(copy, claims),
                )
            if copied is None:
                raise rebalancing()
            verdicts = copied
        return self._answer(overall(verdicts), verdicts)

    async def _read(self, deadline: Deadline) -> tuple[Claims] | None:
        """The claims as the interpreter reads them; None if it does not answer in time."""
        unsaid = self.utterance.model_copy(update={"utterance_id": f"read-{uuid.uuid4().hex}"})
        reading = self.asked.conversations.read(self.asked.owner, unsaid)
        try:
            if not await deadline.first([reading]):
                return None
            answer = reading.result()
        finally:
            reading.cancel()
        return (answer.claims if isinstance(answer, Reading) else self.request.claims,)

    def _verdicts(self, conversation: Conversation, claims: Claims) -> tuple[VerdictEvent, ...]:
        ids = [claim.associated() for claim in claims or ()]
        verdicts = verify_claims(conversation.state, ids)
        return answer_candidate(conversation, self.utterance.utterance_id, claims, verdicts)

    def _answer(
        self,
        outcome: Outcome,
        verdicts: tuple[VerdictEvent, ...],
        *,
        reason: VerdictReason | None = None,
        recorded: bool = False,
    ) -> CheckAnswer:
        worst = [verdict.reason for verdict in verdicts if verdict.outcome is outcome]
        return CheckAnswer(
            tenant_id=self.asked.tenant_id,
            conversation_id=self.asked.conversation_id,
            candidate_id=self.utterance.utterance_id,
            outcome=outcome,
            reason=worst[0] if worst else reason,
            recorded=recorded,
            verdicts=verdicts,
        )


def _refused(letter: Unusable) -> ProblemRaised:
    """Why the draft cannot be in the log."""
    if letter.dead_letter_class is DeadLetterClass.TOO_LONG:
        return ProblemRaised(Kind.TOO_LARGE)
    if letter.dead_letter_class is DeadLetterClass.ERASED:
        return ProblemRaised(Kind.NO_CONVERSATION)
    return ProblemRaised(Kind.INVALID, detail=letter.problem, place=letter.place or None)
