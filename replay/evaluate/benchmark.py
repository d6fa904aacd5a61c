"""What a benchmark is to the runner: items, arms, and what each arm scores on each item.

A benchmark that needs no model is measured by `Workload.measure`. With a model, `question` says
what the model is handed under an arm, and `grade` what its answer is worth, so that two arms differ
in what is handed over and in nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, final

from processor.interpreter.port import Interpreter
from schemas.evidence import MemoryClass

Scores: TypeAlias = dict[str, float]
"""Measure -> figure; a measure that an item does not have is left out."""

CLASSES = tuple(each.value for each in MemoryClass)
"""The arms that are memory classes."""

LLM_ONLY = "llm_only"
RAG = "rag"
RAG_EMBEDDINGS = "rag_embeddings"
NATIVE = "verifier_native"
END_TO_END = "verifier_end_to_end"


class BenchmarkError(ValueError):
    """The evaluation cannot be done so; `str(error)` is one line that says why."""


@final
class Options(NamedTuple):
    """How a benchmark is loaded."""

    data: Path | None = None
    seed: int = 0


@final
class Item(NamedTuple):
    """One thing to be measured; `group` is its stratum, a number where the benchmark has an axis.

    `content` is for the workload that made the item.
    """

    id: str
    group: str = ""
    content: Any = None


@final
class Question(NamedTuple):
    """What a model is handed: the context of an arm, and what is asked."""

    context: str
    question: str


@final
class Contrast(NamedTuple):
    """Two arms that are compared item by item."""

    name: str
    measure: str
    arm: str
    against: str


class Workload(ABC):
    """The items of one benchmark, loaded."""

    items: Sequence[Item]

    @abstractmethod
    def measure(self, item: Item, arm: str) -> Scores:
        """What the arm scores on the item, without a model."""

    def question(self, item: Item, arm: str) -> Question:
        """What a model is handed under this arm. Raises BenchmarkError."""
        raise BenchmarkError("this benchmark asks nothing of a model")

    def grade(self, item: Item, answer: str) -> Scores:
        """What a model's answer is worth. Raises BenchmarkError."""
        raise BenchmarkError("this benchmark asks nothing of a model")

    async def interpret(self, interpreter: Interpreter, items: Sequence[Item]) -> Scores:
        """Read the raw text that these items need for `verifier_end_to_end`; what that cost.

        Raises BenchmarkError and EndpointUnavailable.
        """
        raise BenchmarkError("this benchmark has no text that an interpreter could read")

    def complete(
        self, scored: Mapping[tuple[str, str], Scores]
    ) -> Mapping[tuple[str, str], Scores]:
        """Figures of an item that depend on others, by item and arm as in `scored`."""
        return {}

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """What is to be said of the data and the figures, beside the table.

        `scored` are the scores by item and arm.
        """
        return []


@final
class Benchmark(NamedTuple):
    """One benchmark: its arms without and with a model, and what was published about it.

    `axis` names what the groups count, if they are numbers. `needs_data` says what `--data` names,
    `takes_data` what it may name. `extra_arms`, with a model or without, need more than the extra
    and are measured where they are asked for.
    """

    name: str
    about: str
    load: Callable[[Options], Workload]
    arms: tuple[str, ...]
    published: str
    needs_data: str | None = None
    model_arms: tuple[str, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    axis: str | None = None
    takes_data: str | None = None
    extra_arms: tuple[str, ...] = ()

    def arms_for(self, with_model: bool, asked: Sequence[str]) -> tuple[str, ...]:
        """The arms that were asked for, else all. Raises BenchmarkError."""
        known = self.model_arms if with_model else self.arms
        if not known:
            raise BenchmarkError(f"{self.name} has nothing to ask a model: leave out --reader")
        there = known + self.extra_arms
        for arm in asked:
            if arm not in there:
                raise BenchmarkError(f"no arm {arm!r}; there are {', '.join(there)}")
        return tuple(dict.fromkeys(asked)) or known


def given_data(options: Options) -> Path:
    """The path that was given. Raises BenchmarkError."""
    if options.data is None:
        raise BenchmarkError("--data is missing: the path of the published file")
    return options.data
