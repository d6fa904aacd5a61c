"""`incident`, `muddy`, `deliberation`: the papers' own scenarios, whose outcome is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import final

from processor import scenarios
from processor.engine.conversation import Conversation
from processor.engine.plausibility.syntax import parse
from processor.engine.retraction import affected_by_ids
from processor.engine.state import State
from processor.scenarios.expected import ExpectedState
from replay.evaluate.benchmark import Benchmark, Item, Scores, Workload
from replay.evaluate.folding import fold_native, fold_one
from replay.evaluate.suites.affected import CLOSURE, ONE_STEP, affected_scores

MUDDY = "muddy-children"
DECIDED_ON = "a3"
ENGINE = "engine"


@final
class Incident(Workload):
    """The retraction queries at the end of the incident: who rests on a withdrawn observation."""

    def __init__(self) -> None:
        gold = scenarios.expected("incident").retractions
        assert gold is not None
        self._over = gold.over
        self._state = fold_native(scenarios.utterances("incident")).state
        self.items = tuple(Item(id_, "", rests) for id_, rests in gold.closure.items())

    def measure(self, item: Item, arm: str) -> Scores:
        """One query within the hypotheses: one yes or no for each of them."""
        report = affected_by_ids(self._state, (item.id,))
        answer = report.transitive if arm == CLOSURE else report.direct
        within = [id_ for id_ in answer if id_ in self._over]
        right = sum((id_ in within) == (id_ in item.content) for id_ in self._over)
        return {
            **affected_scores(within, item.content),
            "decisions_right": right,
            "decisions": len(self._over),
        }

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """The sums that the paper gives."""
        told = []
        for arm in dict.fromkeys(arm for _, arm in scored):
            of_arm = [scores for (_, each), scores in scored.items() if each == arm]
            sums = {name: sum(scores[name] for scores in of_arm) for name in of_arm[0]}
            told.append(
                f"{arm}: right on {sums['exact']:.0f} of {len(of_arm)} retractions, "
                f"{sums['decisions_right']:.0f} of {sums['decisions']:.0f} decisions"
            )
        return told


@final
class Muddy(Workload):
    """The children's puzzle round by round: the worlds that are left, and who knows what."""

    def __init__(self) -> None:
        expected = scenarios.expected(MUDDY)
        self._states = expected.after
        self._answers: dict[str, Scores] = {}
        conversation: Conversation | None = None
        for utterance in scenarios.utterances(MUDDY):
            if conversation is None:
                conversation = Conversation.empty(utterance.tenant_id, utterance.conversation_id)
            fold_one(conversation, utterance)
            turn = str(conversation.turn)
            if turn in self._states:
                self._answers[turn] = _round(conversation.state, self._states[turn])
        self.items = tuple(Item(f"turn {turn}", turn) for turn in self._answers)

    def measure(self, item: Item, arm: str) -> Scores:
        """Whether the worlds and the knowledge claims after this round are the stored ones."""
        return self._answers[item.group]


@final
class Deliberation(Workload):
    """What the false assumption brings down: exactly the one decision in good standing."""

    def __init__(self) -> None:
        conversation = fold_native(scenarios.utterances("deliberation"))
        self._state = conversation.state
        self.items = (Item(DECIDED_ON, "", _decision()),)

    def measure(self, item: Item, arm: str) -> Scores:
        """The affected records in good standing, beside the decision."""
        report = affected_by_ids(self._state, (item.id,))
        answer = [
            id_
            for id_ in (report.transitive if arm == CLOSURE else report.direct)
            if id_ in report.in_good_standing
        ]
        return affected_scores(answer, item.content)


def _decision() -> tuple[str, ...]:
    """The records of the decision that stands on the assumption, from the stored expectation."""
    after = scenarios.expected("deliberation").after.values()
    last = [each.affected for each in after if each.affected and DECIDED_ON in each.affected]
    return last[-1][DECIDED_ON].in_good_standing


def _round(state: State, gold: ExpectedState) -> Scores:
    scores: Scores = {}
    if gold.worlds is not None:
        left = _worlds(state, gold.worlds.variables)
        scores["worlds"] = len(left)
        scores["worlds_right"] = float(left == list(gold.worlds.true_in))
    if gold.holds:
        right = [state.model.holds(parse(text)) == holds for text, holds in gold.holds.items()]
        scores["claims_right"] = sum(right)
        scores["claims"] = len(right)
    return scores


def _worlds(state: State, variables: Sequence[str]) -> list[tuple[str, ...]]:
    """The valuations that the law allows, each as the variables that are true."""
    allowed = []
    for truth in product((True, False), repeat=len(variables)):
        pairs = list(zip(variables, truth, strict=True))
        said = " & ".join(name if is_true else f"!{name}" for name, is_true in pairs)
        if not state.model.holds(parse(f"!({said})")):
            allowed.append(tuple(name for name, is_true in pairs if is_true))
    return allowed


INCIDENT = Benchmark(
    "incident",
    "The retraction queries of the debugging scenario: closure and one step against the gold sets.",
    lambda options: Incident(),
    (CLOSURE, ONE_STEP),
    "closure right on 4 of 4 retractions, one step on 1 of 4; 16 decisions (Grounded "
    "Continuation, section 4.4).",
)
MUDDY_CHILDREN = Benchmark(
    "muddy",
    "Three muddy children: worlds and knowledge, round by round.",
    lambda options: Muddy(),
    (ENGINE,),
    "8, 7, 4 and 1 worlds (Grounded Continuation, appendix B.1).",
    axis="turn",
)
DELIBERATION = Benchmark(
    "deliberation",
    "Withdrawing the false assumption of the deliberation: what falls that stood.",
    lambda options: Deliberation(),
    (CLOSURE, ONE_STEP),
    "the affected records in good standing are the one decision (Grounded Continuation, "
    "appendix B.3).",
)
