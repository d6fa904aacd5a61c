"""`locomo`, `longmemeval`, `beam`: whether the evidence is among the turns that are handed over.

Without a model only words can be handed over: the nearest turns by BM25, or all. What the map
would hand over takes an interpreter: `verifier_end_to_end` gives the grounded records that are
nearest to the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, final

from processor.evidence.key import normalised
from processor.interpreter.port import Interpreter
from replay.evaluate.adapters.conversations import Query, Talk, beam, locomo, longmemeval
from replay.evaluate.asking import is_abstention
from replay.evaluate.benchmark import (
    END_TO_END,
    LLM_ONLY,
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
from replay.evaluate.folding import fold_read
from replay.evaluate.retrieval import FACTS, STATEMENTS, Nearest, Retriever
from replay.evaluate.tokens import tokens

RAG_MORE = f"rag_{FACTS}"


@final
class _Asked(NamedTuple):
    """One question about one conversation."""

    talk: str
    query: Query


@final
class Conversations(Workload):
    """One item per question; the group is the kind of the question."""

    def __init__(self, talks: Iterable[Talk]) -> None:
        self._talks = {talk.id: talk for talk in talks}
        self.items = tuple(
            Item(query.id, query.group, _Asked(talk.id, query))
            for talk in self._talks.values()
            for query in talk.queries
        )
        self._retriever = cache(self._indexed)
        self._nearest = cache(self._embedded)
        self._whole = cache(self._whole_tokens)
        self._records: dict[str, tuple[list[str], Retriever]] = {}

    def measure(self, item: Item, arm: str) -> Scores:
        """How much of the evidence is handed over, in how many tokens."""
        asked: _Asked = item.content
        talk, evidence = self._talks[asked.talk], asked.query.evidence
        if arm == LLM_ONLY:
            handed, spent = [turn.id for turn in talk.turns], self._whole(talk.id)
        else:
            places = self._places(asked, arm)
            handed = [talk.turns[place].id for place in places]
            spent = tokens("\n".join(talk.turns[place].line() for place in places))
        scores: Scores = {"tokens": float(spent)}
        if evidence:
            found = sum(id_ in handed for id_ in evidence)
            scores["evidence_recall"] = found / len(evidence)
            scores["all_evidence"] = float(found == len(evidence))
        if asked.query.revised:
            scores["revised_shown"] = float(any(id_ in handed for id_ in asked.query.revised))
        return scores

    def question(self, item: Item, arm: str) -> Question:
        """What a model is handed."""
        asked: _Asked = item.content
        talk = self._talks[asked.talk]
        if arm == END_TO_END:
            claims, retriever = self._records[talk.id]
            best = retriever.best(asked.query.question, STATEMENTS)
            return Question("\n".join(claims[place] for place in best), asked.query.question)
        every = tuple(range(len(talk.turns)))
        places = every if arm == LLM_ONLY else self._places(asked, arm)
        context = "\n".join(talk.turns[place].line() for place in places)
        return Question(context, asked.query.question)

    def grade(self, item: Item, answer: str) -> Scores:
        """Whether the gold answer stands in what was said; an abstention where there is none."""
        gold = normalised(item.content.query.answer)
        right = gold in normalised(answer) if gold else is_abstention(answer)
        return {"right": float(right)}

    async def interpret(self, interpreter: Interpreter, items: Sequence[Item]) -> Scores:
        """Read the conversations that are asked about."""
        spent = 0.0
        for id_ in dict.fromkeys(item.content.talk for item in items):
            talk = self._talks[id_]
            read = await fold_read(interpreter, talk.utterances())
            grounded = [r.claim for r in read.conversation.state.standing_records() if r.grounded]
            self._records[talk.id] = (grounded, Retriever(grounded))
            spent += read.cost["ingest_tokens"]
        return {"ingest_tokens": spent}

    def _places(self, asked: _Asked, arm: str) -> tuple[int, ...]:
        count = FACTS if arm == RAG_MORE else STATEMENTS
        if arm == RAG_EMBEDDINGS:
            return self._nearest(asked.talk).best(asked.query.question, count)
        return self._retriever(asked.talk).best(asked.query.question, count)

    def _indexed(self, talk: str) -> Retriever:
        return Retriever([turn.line() for turn in self._talks[talk].turns])

    def _embedded(self, talk: str) -> Nearest:
        return Nearest([turn.line() for turn in self._talks[talk].turns])

    def _whole_tokens(self, talk: str) -> int:
        return tokens("\n".join(turn.line() for turn in self._talks[talk].turns))


def _loading(read: Callable[[Path], Iterable[Talk]]) -> Callable[[Options], Workload]:
    return lambda options: Conversations(read(given_data(options)))


_ARMS = (RAG, RAG_MORE, LLM_ONLY)
_MODEL_ARMS = (LLM_ONLY, RAG, END_TO_END)
_CONTRASTS = (Contrast("verifier over retrieval", "right", END_TO_END, RAG),)
LOCOMO = Benchmark(
    "locomo",
    "LoCoMo: whether the evidence is among the turns that a question is handed.",
    _loading(locomo),
    _ARMS,
    "competitive with retrieval on 60 questions (Grounded Continuation, first version).",
    "locomo.json.",
    _MODEL_ARMS,
    _CONTRASTS,
    extra_arms=(RAG_EMBEDDINGS,),
)
LONGMEMEVAL = Benchmark(
    "longmemeval",
    "LongMemEval: whether the evidence is among the turns that a question is handed.",
    _loading(longmemeval),
    _ARMS,
    "knowledge updates, oracle histories: 89.7 % against 88.5 % for the whole context and 87.2 % "
    "for retrieval (Grounded Continuation, first version).",
    "longmemeval_oracle.json, _s or _m.",
    _MODEL_ARMS,
    _CONTRASTS,
    extra_arms=(RAG_EMBEDDINGS,),
)
BEAM = Benchmark(
    "beam",
    "BEAM: whether the evidence is among the turns that a question is handed.",
    _loading(beam),
    _ARMS,
    "0.249 against retrieval's 0.202 where evidence was revised, 0.347 against 0.353 where all "
    "stands, judged by a model (Grounded Continuation, section 4.2).",
    "a folder with chat.json and probing_questions/probing_questions.json, or several below it.",
    _MODEL_ARMS,
    _CONTRASTS,
    extra_arms=(RAG_EMBEDDINGS,),
)
