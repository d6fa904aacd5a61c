"""`recon` and `esr-bench`: data that the papers describe and that is not to be had here.

RECON: JSON Lines, one counterfactual scenario a line: `id`, `steps` (each an `id` and the ids in
`depends_on`; what only occurs there is a premise), the `removed` id, `affected`, the gold steps.

ESR-Bench: JSON Lines, one question a line: `question_id`, `phenomenon`, `question`, `gold_answer`
(null: abstain), `gold_support_event_ids`, `gold_deprecated_event_ids`, and `atoms` in order, each
with `event_id`, `entity`, `attribute`, `value`, and where known `polarity`, `time`, `source_role`.
The first atom names the key that is asked for. The value in force before the present one is what
the last deprecated event says, as the paper has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar, final

from pydantic import ValidationError

from processor.engine.conversation import Conversation
from processor.engine.retraction import affected_by_ids
from processor.evidence.answers import Found
from processor.evidence.answers import Query as MemoryQuery
from processor.evidence.fact import Arrival, Told, fact_of
from processor.evidence.readers import ask
from processor.evidence.renders import render
from replay.evaluate.adapters import AdapterError, Published, moment, parse_published, unlike
from replay.evaluate.asking import is_abstention, matches
from replay.evaluate.benchmark import (
    CLASSES,
    Benchmark,
    BenchmarkError,
    Contrast,
    Item,
    Options,
    Question,
    Scores,
    Workload,
    given_data,
)
from replay.evaluate.folding import fold_native
from replay.evaluate.suites.affected import CLOSURE, ONE_STEP, affected_scores
from replay.evaluate.suites.render_terms import BUDGET_TOKENS, TERMS
from replay.evaluate.suites.streams import memory_of_stream
from replay.evaluate.tokens import tokens
from schemas.evidence import Atom, MemoryClass, QueryClass, RenderFormat
from schemas.operations import Hypothesize, Observe
from schemas.utterance import Utterance

Made = TypeVar("Made")
OURS = (
    "the published file could not be had: the field names are ours, after the paper's words, so "
    "what was read here is not known to be the published data (replay/evaluate/README.md)"
)


@final
class ReconStep(Published):
    """One step of a case and what it rests on."""

    id: str
    depends_on: tuple[str, ...] = ()


@final
class ReconScenario(Published):
    """One case with one id taken away."""

    id: str
    steps: tuple[ReconStep, ...]
    removed: str
    affected: tuple[str, ...]

    def utterances(self) -> Iterator[Utterance]:
        """Premises first, then the steps in their order."""
        steps = [step.id for step in self.steps]
        cited = dict.fromkeys(id_ for step in self.steps for id_ in step.depends_on)
        leaves = [id_ for id_ in cited if id_ not in steps]
        operations: list[Observe | Hypothesize] = [
            Observe(op="observe", record=id_, claim=id_) for id_ in leaves
        ]
        operations += (
            Hypothesize(op="hypothesize", record=each.id, claim=each.id, premises=each.depends_on)
            if each.depends_on
            else Observe(op="observe", record=each.id, claim=each.id)
            for each in self.steps
        )
        for place, operation in enumerate(operations):
            yield Utterance(
                conversation_id=self.id,
                utterance_id=f"u{place}",
                speaker="case",
                text=operation.claim,
                at=moment(place),
                operations=(operation,),
            )

    def conversation(self) -> Conversation:
        """The case, folded."""
        return fold_native(self.utterances())


@final
class Recon(Workload):
    """One item per counterfactual scenario."""

    def __init__(self, options: Options) -> None:
        self._folded: dict[str, Conversation] = {}
        found: list[ReconScenario] = []
        for place, line in _lines(options):
            each = parse_published(ReconScenario, line, place)
            self._folded[each.id] = _made(place, each.conversation)
            if each.removed not in self._folded[each.id].state.records:
                raise AdapterError(
                    f"{place}: removed: there is no step or premise {each.removed!r}"
                )
            found.append(each)
        self.items = tuple(Item(each.id, "", each) for each in found)

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """Whose field names these are."""
        return [OURS]

    def measure(self, item: Item, arm: str) -> Scores:
        """The affected steps beside the gold ones."""
        each: ReconScenario = item.content
        report = affected_by_ids(self._folded[each.id].state, (each.removed,))
        answer = report.transitive if arm == CLOSURE else report.direct
        return affected_scores(answer, each.affected) | {
            "dependent_steps": float(len(each.affected))
        }


@final
class EsrAtom(Published):
    """One extracted atom."""

    event_id: str
    entity: str
    attribute: str
    value: str
    polarity: bool = True
    time: str | None = None
    source_role: str = "user"


@final
class EsrQuestion(Published):
    """One question about the key of the first atom."""

    question_id: str
    phenomenon: str
    question: str
    gold_answer: str | None
    gold_support_event_ids: tuple[str, ...] = ()
    gold_deprecated_event_ids: tuple[str, ...] = ()
    atoms: tuple[EsrAtom, ...]

    def arrivals(self) -> tuple[Arrival, ...]:
        """The atoms as they arrive."""
        return tuple(
            Arrival(
                fact_of(
                    Atom(
                        entity=each.entity,
                        attribute=each.attribute,
                        value=each.value,
                        polarity=each.polarity,
                        valid_from=each.time,
                    ),
                    Told(each.event_id, each.source_role, each.source_role, place + 1, place + 1),
                    place,
                )
            )
            for place, each in enumerate(self.atoms)
        )

    def before(self) -> str | None:
        """The value of the last deprecated event of the key, if it is another than the answer."""
        values = [
            each.value for each in self.atoms if each.event_id in self.gold_deprecated_event_ids
        ]
        return values[-1] if values and values[-1] != self.gold_answer else None


@final
class EsrBench(Workload):
    """One item per question, and one for the value before where it is known."""

    def __init__(self, options: Options) -> None:
        found: list[EsrQuestion] = []
        for place, line in _lines(options):
            each = parse_published(EsrQuestion, line, place)
            if not _made(place, each.arrivals):
                raise AdapterError(f"{place}: atoms: there are none")
            found.append(each)
        self.items = tuple(
            item
            for each in found
            for item in (
                Item(each.question_id, each.phenomenon, (each, QueryClass.SNAPSHOT)),
                Item(f"{each.question_id} before", "provenance", (each, QueryClass.PROVENANCE)),
            )
            if item.content[1] is QueryClass.SNAPSHOT or each.before() is not None
        )

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """Whose field names these are."""
        return [OURS]

    def measure(self, item: Item, arm: str) -> Scores:
        """Exact match with the gold value, or with the gold abstention."""
        each, query_class = item.content
        arrivals = each.arrivals()
        memory = memory_of_stream(MemoryClass(arm), arrivals)
        answer = ask(memory, MemoryQuery(arrivals[0].fact.key, query_class))
        return self._scores(item, answer.found is Found.ABSTAIN, answer.value or "")

    def question(self, item: Item, arm: str) -> Question:
        """The render of a class, and the question as it is published."""
        each, query_class = item.content
        arrivals = each.arrivals()
        memory = memory_of_stream(MemoryClass(arm), arrivals)
        key = arrivals[0].fact.key
        retains = query_class is QueryClass.PROVENANCE
        context = render(memory, RenderFormat.VERBOSE, tokens, BUDGET_TOKENS, [key], closed=True)
        asked = "Which value was in force just before the present one? " if retains else ""
        return Question(context, asked + each.question)

    def grade(self, item: Item, answer: str) -> Scores:
        """The same for what a model says."""
        return self._scores(item, is_abstention(answer), answer)

    def _scores(self, item: Item, abstained: bool, answer: str) -> Scores:
        each, query_class = item.content
        gold = each.gold_answer if query_class is QueryClass.SNAPSHOT else each.before()
        right = abstained if gold is None else not abstained and matches(answer, gold)
        return {"exact": float(right)}


def _made(place: str, make: Callable[[], Made]) -> Made:
    """What is made of a line that has the right shape. Raises AdapterError."""
    try:
        return make()
    except ValidationError as invalid:
        raise unlike(invalid, place) from invalid
    except BenchmarkError as refused:
        raise AdapterError(f"{place}: {refused}") from refused


def _lines(options: Options) -> Iterator[tuple[str, bytes]]:
    path: Path = given_data(options)
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            yield f"{path}:{number}", line


RECON = Benchmark(
    "recon",
    "RECON: what falls when a fact of a case is taken away, closure and one step.",
    Recon,
    (CLOSURE, ONE_STEP),
    "closure exact on 64 of 64 scenarios, one step on 13, 198 dependent steps, no false positive "
    "(Grounded Continuation, section 4.4).",
    "JSON Lines in field names of ours, since the published file could not be had: see "
    "replay/evaluate/README.md.",
)
ESR_BENCH = Benchmark(
    "esr-bench",
    "ESR-Bench: the value in force and the one before it, for every memory class.",
    EsrBench,
    CLASSES,
    "render +0.159, fine mechanism +0.025, coarse mechanism +0.087 on reverted reverts; provenance "
    "0.243 discarding, 0.439 blind, 0.604 coarse retaining, 0.715 ledger, with model readers and "
    "judges (Render Confound, table 2 and section 4.3).",
    "JSON Lines in field names of ours, since the published file could not be had: see "
    "replay/evaluate/README.md.",
    CLASSES,
    (
        Contrast("render", "exact", TERMS[1], TERMS[0]),
        Contrast("fine mechanism", "exact", TERMS[3], TERMS[1]),
        Contrast("coarse mechanism", "exact", TERMS[2], TERMS[1]),
    ),
)
