"""`ingest-cost`: what an interpreter would be sent to read a stream, and when that has paid off.

The prompts are the product's own, one utterance at a time, in the state that the facts before it
left; the replies are the gold operations. So the cost is counted without a model. Savings are what
`memab-fc` hands over less than the whole context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from processor.engine.conversation import Conversation
from processor.interpreter.prompts import BUDGET_TOKENS, Condition, StandardPrompts
from processor.render.situation import render_situation
from replay.evaluate.adapters.memab_fc import parse_context, read_contexts, stream_utterances
from replay.evaluate.benchmark import (
    LLM_ONLY,
    NATIVE,
    Benchmark,
    Item,
    Options,
    Scores,
    Workload,
    given_data,
)
from replay.evaluate.folding import fold_one
from replay.evaluate.suites.memab_fc import MemabFC
from replay.evaluate.tokens import tokens
from schemas.wire import canonical_bytes


@final
class IngestCost(Workload):
    """One item per fact of the first stream; an arm is what the prompts tell."""

    def __init__(self, options: Options) -> None:
        self._options = options
        context = read_contexts(given_data(options))[0]
        self._utterances = tuple(stream_utterances(parse_context(context), "memab-fc"))
        self._conversation = Conversation.empty("default", "memab-fc")
        self._prompts = {
            condition.value: StandardPrompts(condition, BUDGET_TOKENS, render_situation)
            for condition in Condition
        }
        self.items = tuple(
            Item(each.utterance_id, "", place) for place, each in enumerate(self._utterances)
        )

    def measure(self, item: Item, arm: str) -> Scores:
        """The tokens of one prompt, and of the gold operations as its reply."""
        self._go_to(item.content)
        utterance = self._utterances[item.content]
        in_words = utterance.model_copy(update={"operations": None})
        prompt = self._prompts[arm].statement(self._conversation, in_words, None)
        reply = b"".join(canonical_bytes(each) for each in utterance.operations or ())
        return {
            "tokens_in": float(sum(tokens(each.content) for each in prompt.messages)),
            "tokens_out": float(tokens(reply.decode())),
        }

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """The cost of the whole stream, and after how many questions it has paid off."""
        saved = self._saved_per_question()
        told = [f"a question is handed {saved:,.0f} tokens less than the whole context"]
        for arm in dict.fromkeys(arm for _, arm in scored):
            of_arm = [s for (_, each), s in scored.items() if each == arm]
            spent = sum(s["tokens_in"] + s["tokens_out"] for s in of_arm)
            told.append(
                f"{arm}: {spent:,.0f} tokens to ingest {len(of_arm)} facts, paid off after "
                f"{spent / saved:,.1f} questions"
            )
        return [*told, "structured updates cost no tokens to ingest: paid off at once"]

    def _go_to(self, place: int) -> None:
        if self._conversation.turn > place:
            self._conversation = Conversation.empty("default", "memab-fc")
        for utterance in self._utterances[self._conversation.turn : place]:
            fold_one(self._conversation, utterance)

    def _saved_per_question(self) -> float:
        workload = MemabFC(self._options)
        spent = {
            arm: sum(workload.measure(item, arm)["tokens"] for item in workload.items)
            for arm in (LLM_ONLY, NATIVE)
        }
        return (spent[LLM_ONLY] - spent[NATIVE]) / len(workload.items)


INGEST_COST = Benchmark(
    "ingest-cost",
    "What reading a stream of facts costs with the product's prompts, against what it saves.",
    IngestCost,
    tuple(condition.value for condition in Condition),
    "96.6K tokens to ingest the 6K stream, paid off after 16.3 of 100 questions; 494.7K and 15.3 "
    "for 32K (Grounded Continuation, section 4.5).",
    "factconsolidation_6k.json, or another stream in that format.",
)
