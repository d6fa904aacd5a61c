"""Read-only views of a conversation as of any turn: the JSON that the commands print.

A view is taken of a copy, in another thread, so however large the conversation is, nothing else
waits for it. What a memory says now needs no copy: it is read from the rows that are there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from processor.app.web.asked import Asked, Deadline
from processor.app.web.problem_details import RETRY_SECONDS, Kind, ProblemRaised
from processor.engine.conversation import Conversation
from processor.engine.errors import UnknownRecordError
from processor.evidence.key import Key
from processor.evidence.memories import AWARE_CLASSES
from processor.render.answers import affected_answer, context_answer, record_answer
from processor.render.memory import Asked as AskedOfMemory
from processor.render.memory import (
    FacetNeededError,
    Remembered,
    memory_answer,
    memory_render,
    remembered,
)
from processor.render.view import View, state_view
from replay.alerts import AlertPlace
from replay.errors import NotKeptError
from schemas.evidence import MemoryClass, QueryClass
from schemas.http import (
    AffectedQuery,
    AlertsAnswer,
    AlertsQuery,
    ContextQuery,
    MemoryQuery,
    PlacedAlert,
    ViewQuery,
)
from schemas.wire import canonical_bytes


async def state(asked: Asked, query: ViewQuery) -> bytes:
    """The dependency map."""
    return await _view(asked, query, state_view)


async def record(asked: Asked, query: ViewQuery, record_id: str) -> bytes:
    """Whether a record is grounded, what it rests on, and what happened to it."""
    return await _view(asked, query, lambda copy: record_answer(copy, record_id))


async def affected(asked: Asked, query: AffectedQuery) -> bytes:
    """What would lose support if the records were withdrawn."""
    return await _view(asked, query, lambda copy: affected_answer(copy, query.record))


async def context(asked: Asked, query: ContextQuery) -> bytes:
    """The state in words."""
    return await _view(
        asked,
        query,
        lambda copy: context_answer(copy, query.view, query.budget, query.withdrawn, query.record),
    )


async def memory(asked: Asked, query: MemoryQuery, of_tenant: MemoryClass) -> bytes:
    """Which value is in force for a key, what it replaced, or the whole memory in words.

    It is answered by the tenant's memory class, unless the query names one.
    """
    if (query.entity is None) != (query.attribute is None):
        place = "entity" if query.entity is None else "attribute"
        raise ProblemRaised(Kind.INVALID, place=place, detail="entity and attribute go together")
    if query.at is not None and query.query is not QueryClass.AS_OF:
        raise ProblemRaised(Kind.INVALID, place="at", detail="at goes with the query as_of alone")
    by = query.memory or of_tenant
    try:
        if query.turn is None and by in AWARE_CLASSES:
            return await _live_memory(asked, query, by)
        return await _view(
            asked, query, lambda copy: _told(query, remembered(copy, by, _key_in(query)))
        )
    except FacetNeededError as needed:
        raise ProblemRaised(Kind.INVALID, place="facet", detail=str(needed)) from needed


async def _live_memory(asked: Asked, query: MemoryQuery, by: MemoryClass) -> bytes:
    """The same of the conversation as it is: its rows are values, so nothing is copied."""
    await _wait(asked, query.after, query.wait_ms)
    live = await asked.conversations.find(asked.owner, asked.tenant_id, asked.looked_for)
    if live is None:
        raise ProblemRaised(Kind.NO_CONVERSATION)
    of = remembered(live, by, _key_in(query))
    async with asked.copying:
        return await asyncio.to_thread(lambda: canonical_bytes(_told(query, of)))


def _key_in(query: MemoryQuery) -> Key | None:
    asked = _asked_in(query)
    return None if asked is None else asked.key


def _asked_in(query: MemoryQuery) -> AskedOfMemory | None:
    if query.entity is None or query.attribute is None:
        return None
    return AskedOfMemory(query.entity, query.attribute, query.facet, query.query, at=query.at)


def _told(query: MemoryQuery, of: Remembered) -> View:
    asked = _asked_in(query)
    if asked is None:
        return memory_render(of, query.format, query.budget, superseded=query.superseded)
    return memory_answer(of, asked)


async def alerts(asked: Asked, query: AlertsQuery) -> bytes:
    """Which decisions and claims lost their ground, behind a place in the log."""
    await _wait(asked, query.after, query.wait_ms)
    sequence, place = map(int, query.since.split("."))
    page = await asked.conversations.alerts(
        asked.owner, asked.tenant_id, asked.looked_for, AlertPlace(sequence, place), query.limit
    )
    if page is None:
        raise ProblemRaised(Kind.NO_CONVERSATION)
    answer = AlertsAnswer(
        tenant_id=asked.tenant_id,
        conversation_id=asked.conversation_id,
        alerts=tuple(
            PlacedAlert(since=_written(place), alert=alert) for place, alert in page.alerts
        ),
        since=_written(page.since),
        is_last=page.is_last,
        is_whole=page.is_whole,
    )
    return await asyncio.to_thread(canonical_bytes, answer)


def _written(place: AlertPlace) -> str:
    return f"{place.sequence}.{place.place}"


async def _wait(asked: Asked, after: str | None, wait_ms: int) -> None:
    """Until the utterance is folded. Raises ProblemRaised if it is not in time."""
    if not await asked.is_folded(after, Deadline(wait_ms)):
        raise ProblemRaised(Kind.NOT_FOLDED_YET, place="after", retry_s=RETRY_SECONDS)


async def _view(asked: Asked, query: ViewQuery, answer: Callable[[Conversation], object]) -> bytes:
    await _wait(asked, query.after, query.wait_ms)
    try:
        async with asked.copying:
            seen = await asked.conversations.copied(
                asked.tenant_id,
                asked.looked_for,
                query.turn,
                lambda copy: canonical_bytes(answer(copy)),
            )
    except UnknownRecordError as unknown:
        raise ProblemRaised(Kind.NO_RECORD, place="record") from unknown
    except NotKeptError as earlier:
        raise ProblemRaised(Kind.NOT_KEPT, place="turn") from earlier
    if seen is None:
        raise ProblemRaised(Kind.NO_CONVERSATION)
    return seen
