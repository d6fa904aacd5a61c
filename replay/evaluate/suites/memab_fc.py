"""`memab-fc`: what a question about a stream of replaced facts is handed, in how many tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple, final

from processor.engine.conversation import Conversation
from processor.evidence.key import Key, normalised
from processor.evidence.memories import Memory
from processor.evidence.reach import HOPS, Index
from processor.evidence.renders import render
from processor.interpreter.port import Interpreter
from processor.render.memory import memory_of
from replay.evaluate.adapters import Published, parse_published
from replay.evaluate.adapters.memab_fc import Fact, parse_context, stream_utterances
from replay.evaluate.asking import matches
from replay.evaluate.benchmark import (
    END_TO_END,
    LLM_ONLY,
    NATIVE,
    RAG,
    RAG_EMBEDDINGS,
    Benchmark,
    Contrast,
    Item,
    Options,
    Question,
    Scores,
    Workload,
    given_data,
)
from replay.evaluate.folding import fold_native, fold_read
from replay.evaluate.retrieval import FACTS, STATEMENTS, Nearest, Retriever
from replay.evaluate.tokens import tokens
from schemas.evidence import MemoryClass, RenderFormat

RAG_STATEMENTS = f"rag_{STATEMENTS}"
RETRIEVING = (RAG, RAG_STATEMENTS, RAG_EMBEDDINGS)
CLASSES = (MemoryClass.COARSE_DISCARD, MemoryClass.COARSE_RETAIN, MemoryClass.RENDER_MATCHED)
"""Memory classes whose rows a question can be led through; verifier_native is the ledger."""
SINGLE, MULTI = "single-hop", "multi-hop"
BUDGET_TOKENS = 10_000
_HOPS = {SINGLE: 1, MULTI: HOPS}


class _Metadata(Published):
    qa_pair_ids: tuple[str, ...]


class _Part(Published):
    context: str
    questions: tuple[str, ...]
    answers: tuple[tuple[str, ...], ...]
    metadata: _Metadata


class _File(Published):
    data: tuple[_Part, ...]


@final
class _Stream(NamedTuple):
    """One stream of facts with what each arm keeps of it."""

    facts: tuple[Fact, ...]
    conversation: Conversation
    memories: Mapping[MemoryClass, Memory]
    retriever: Retriever


@final
class _Asked(NamedTuple):
    """One question."""

    context: str
    question: str
    gold: tuple[str, ...]


@final
class MemabFC(Workload):
    """One item per question."""

    def __init__(self, options: Options) -> None:
        path = given_data(options)
        parts = parse_published(_File, path.read_bytes(), str(path)).data
        self._streams = {part.context: _stream(part.context) for part in parts}
        self._read: dict[str, Memory] = {}
        self._nearest = cache(self._embedded)
        self.items = tuple(
            Item(f"{_group(part)} {place}", _group(part), _Asked(part.context, question, gold))
            for part in parts
            for place, (question, gold) in enumerate(zip(part.questions, part.answers, strict=True))
        )

    def measure(self, item: Item, arm: str) -> Scores:
        """Whether the gold answer is in what is handed over, and what of it is superseded."""
        asked: _Asked = item.content
        stream = self._streams[asked.context]
        handed = self._handed(item, arm)
        shown = _values(stream, arm, asked, item.group)
        if shown is None:
            gold_in = any(normalised(gold) in normalised(handed) for gold in asked.gold)
        else:
            gold_in = any(normalised(gold) in shown for gold in asked.gold)
        return {
            "gold_in_evidence": float(gold_in),
            "superseded_shown": float(self._superseded(stream, arm, asked, item.group)),
            "tokens": float(tokens(handed)),
        }

    def question(self, item: Item, arm: str) -> Question:
        """What an arm hands over, and the question."""
        return Question(self._handed(item, arm), item.content.question)

    def grade(self, item: Item, answer: str) -> Scores:
        """Exact match with one of the gold answers, but for case and white space."""
        return {"right": float(any(matches(answer, gold) for gold in item.content.gold))}

    async def interpret(self, interpreter: Interpreter, items: Sequence[Item]) -> Scores:
        """Read the facts one by one from their sentences."""
        spent = 0.0
        for context in dict.fromkeys(item.content.context for item in items):
            stream = self._streams[context]
            read = await fold_read(interpreter, stream_utterances(stream.facts, "memab-fc"))
            self._read[context] = memory_of(read.conversation, MemoryClass.LEDGER)
            spent += read.cost["ingest_tokens"]
        return {"ingest_tokens": spent}

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """What became of the facts, and after how many questions writing has paid off."""
        told = []
        for stream in self._streams.values():
            rows = stream.memories[MemoryClass.LEDGER].rows.values()
            active = sum(len(holding.facts) for row in rows for holding in row.live)
            closed = sum(len(row.closed) for row in rows)
            told.append(
                f"{len(stream.facts)} facts parsed: {active} active and {closed} superseded in "
                f"{len(rows)} slots"
            )
        for arm in dict.fromkeys(arm for _, arm in scored):
            of_arm = [scores for (_, each), scores in scored.items() if each == arm]
            spent = of_arm[0].get("ingest_tokens")
            whole = _mean_tokens(scored, LLM_ONLY)
            each = _mean_tokens(scored, arm)
            if spent is not None and whole is not None and each is not None and whole > each:
                told.append(
                    f"{arm}: {spent:,.0f} tokens to ingest against {whole - each:,.0f} saved per "
                    f"question over the whole context: paid off after {spent / (whole - each):.1f}"
                )
        return told

    def _handed(self, item: Item, arm: str) -> str:
        asked: _Asked = item.content
        stream = self._streams[asked.context]
        if arm == LLM_ONLY:
            return asked.context
        if arm in RETRIEVING:
            found = self._retrieved(asked, arm)
            return "\n".join(_line(stream.facts[place]) for place in found)
        memory = self._read[asked.context] if arm == END_TO_END else _memory(stream, arm)
        keys = Index(memory).reached(asked.question, _HOPS[item.group])
        return render(memory, RenderFormat.MINIMAL, tokens, BUDGET_TOKENS, keys)

    def _retrieved(self, asked: _Asked, arm: str) -> tuple[int, ...]:
        count = STATEMENTS if arm == RAG_STATEMENTS else FACTS
        if arm == RAG_EMBEDDINGS:
            return self._nearest(asked.context).best(asked.question, count)
        return self._streams[asked.context].retriever.best(asked.question, count)

    def _embedded(self, context: str) -> Nearest:
        return Nearest([fact.sentence for fact in self._streams[context].facts])

    def _superseded(self, stream: _Stream, arm: str, asked: _Asked, group: str) -> int:
        """How many superseded facts are among those handed over."""
        gone = [
            record.id for record in stream.conversation.state.records.values() if not record.stands
        ]
        if arm == LLM_ONLY:
            return len(gone)
        if arm in RETRIEVING:
            found = self._retrieved(asked, arm)
            return sum(stream.facts[place].record in gone for place in found)
        memory = _memory(stream, arm)
        keys = Index(memory).reached(asked.question, _HOPS[group])
        live = [
            fact.record for key in keys for each in memory.rows[key].live for fact in each.facts
        ]
        return sum(record in gone for record in live)


def _stream(context: str) -> _Stream:
    facts = parse_context(context)
    conversation = fold_native(stream_utterances(facts, "memab-fc"))
    memories = {each: memory_of(conversation, each) for each in (MemoryClass.LEDGER, *CLASSES)}
    return _Stream(facts, conversation, memories, Retriever([_line(fact) for fact in facts]))


def _line(fact: Fact) -> str:
    return f"{fact.number}. {fact.sentence}"


def _group(part: _Part) -> str:
    return MULTI if "_mh_" in part.metadata.qa_pair_ids[0] else SINGLE


def _memory(stream: _Stream, arm: str) -> Memory:
    return stream.memories[MemoryClass.LEDGER if arm == NATIVE else MemoryClass(arm)]


def _values(stream: _Stream, arm: str, asked: _Asked, group: str) -> Sequence[str] | None:
    """The values of the rows that are handed over; None for an arm that hands over words."""
    if arm in (LLM_ONLY, *RETRIEVING):
        return None
    memory = _memory(stream, arm)
    keys: tuple[Key, ...] = Index(memory).reached(asked.question, _HOPS[group])
    return [fact.said for key in keys for each in memory.rows[key].live for fact in each.facts]


def _mean_tokens(scored: Mapping[tuple[str, str], Scores], arm: str) -> float | None:
    of_arm = [scores for (_, each), scores in scored.items() if each == arm]
    found = [scores["tokens_in"] for scores in of_arm if "tokens_in" in scores]
    return sum(found) / len(found) if found else None


MEMAB_FC = Benchmark(
    "memab-fc",
    "FactConsolidation: whether the gold answer is in what a question is handed, in how many "
    "tokens (cl100k).",
    MemabFC,
    (NATIVE, RAG, RAG_STATEMENTS, LLM_ONLY, *(each.value for each in CLASSES)),
    "answers: single-hop 0.94-0.98 against retrieval's 0.46-0.95, multi-hop 0.64-0.74 against "
    "0.04-0.13; tokens 97-174 against 753-811 (50 facts) and 6.0K-114.5K; the chain in the active "
    "records for 336 of 400 (Grounded Continuation, sections 4.2 and 4.5; four stream lengths).",
    "factconsolidation_6k.json, or another stream in that format.",
    (LLM_ONLY, RAG, NATIVE, END_TO_END, *(each.value for each in CLASSES)),
    (
        Contrast("verifier over retrieval", "gold_in_evidence", NATIVE, RAG),
        Contrast("verifier over retrieval", "right", NATIVE, RAG),
        Contrast("words over structure", "right", END_TO_END, NATIVE),
    ),
    extra_arms=(RAG_EMBEDDINGS,),
)
