"""The answers to questions about a conversation, as JSON values: one form for every way of asking.

What a command prints with `--json` and what a worker serves are made here. Each raises
UnknownRecordError for a record that the conversation does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from processor.engine.conversation import Conversation
from processor.engine.derive import answer_verdict
from processor.engine.retraction import affected_by_ids, find_record, why
from processor.engine.verify import verify_record
from processor.render.active import render_active
from processor.render.context import render_context
from processor.render.tokens import estimate_tokens
from processor.render.view import View, history_view, why_view
from schemas.derived import VerdictEvent
from schemas.http import ContextView


def verify_answer(conversation: Conversation, record: str) -> VerdictEvent:
    """Whether a record is grounded."""
    return answer_verdict(conversation, record, verify_record(conversation.state, record))


def affected_answer(conversation: Conversation, records: Sequence[str]) -> View:
    """What would lose support if all of these were withdrawn."""
    report = affected_by_ids(conversation.state, records)
    return {"records": sorted(set(records)), **report._asdict()}


def why_answer(conversation: Conversation, record: str) -> list[View]:
    """The support tree of a record, down to its premises."""
    return why_view(why(find_record(conversation.state, record)))


def history_answer(conversation: Conversation, record: str) -> View:
    """What happened to a record."""
    return {"record": record, "history": history_view(find_record(conversation.state, record))}


def context_text(
    conversation: Conversation,
    view: ContextView = ContextView.FULL,
    budget_tokens: int | None = None,
    include_withdrawn: bool = False,
    first: Sequence[str] = (),
) -> str:
    """The state in words, within a budget if there is one, `first` before all other records."""
    for id_ in first:
        find_record(conversation.state, id_)
    match view:
        case ContextView.FULL:
            return render_context(conversation.state, include_withdrawn, budget_tokens, first)
        case ContextView.ACTIVE:
            return render_active(conversation.state, include_withdrawn, budget_tokens, first)
        case _:
            assert_never(view)


def context_answer(
    conversation: Conversation,
    view: ContextView = ContextView.FULL,
    budget_tokens: int | None = None,
    include_withdrawn: bool = False,
    first: Sequence[str] = (),
) -> View:
    """The state in words, and at most how many tokens that takes."""
    text = context_text(conversation, view, budget_tokens, include_withdrawn, first)
    return {"turn": conversation.turn, "text": text, "tokens_max": estimate_tokens(text)}


def record_answer(conversation: Conversation, record: str) -> View:
    """The three answers about one record together."""
    return {
        "verify": verify_answer(conversation, record),
        "why": why_answer(conversation, record),
        "history": history_answer(conversation, record),
    }
