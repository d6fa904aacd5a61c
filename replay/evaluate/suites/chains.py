"""`chains`: every premise of every ReviseQA chain withdrawn, against the graph of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from processor.engine.retraction import affected_by_ids
from processor.engine.state import State
from replay.evaluate.adapters.reviseqa import Step, read_scenarios, scenario_utterances
from replay.evaluate.benchmark import Benchmark, Item, Options, Scores, Workload, given_data
from replay.evaluate.folding import fold_native
from replay.evaluate.suites.affected import CLOSURE, ONE_STEP, affected_scores


@final
class Chains(Workload):
    """One item per premise of each chain."""

    def __init__(self, options: Options) -> None:
        items: list[Item] = []
        self._states: dict[str, State] = {}
        for scenario in read_scenarios(given_data(options)):
            self._states[scenario.id] = fold_native(scenario_utterances(scenario)).state
            for leaf, steps in _above(scenario.reasoning_chain).items():
                items.append(Item(f"{scenario.id} {leaf}", "", (scenario.id, leaf, steps)))
        self.items = tuple(items)

    def measure(self, item: Item, arm: str) -> Scores:
        """The engine's answer beside the steps above the premise."""
        scenario, leaf, steps = item.content
        report = affected_by_ids(self._states[scenario], (leaf,))
        answer = report.transitive if arm == CLOSURE else report.direct
        return affected_scores(answer, steps) | {"dependent_steps": float(len(steps))}

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """In how many scenarios an arm is right on every premise."""
        told = []
        for arm in dict.fromkeys(arm for _, arm in scored):
            exact: dict[str, bool] = {}
            for item in self.items:
                scores = scored.get((item.id, arm))
                if scores is not None:
                    scenario = item.content[0]
                    exact[scenario] = exact.get(scenario, True) and scores["exact"] == 1
            told.append(
                f"{arm}: right on every premise in {sum(exact.values())} of {len(exact)} scenarios"
            )
        return told


def _above(chain: Sequence[Step]) -> dict[str, list[str]]:
    """For each premise of a chain the steps derived from it.

    It goes through the published steps and carries the premises under each conclusion forward, so
    it shares nothing with the map whose closure it is compared with.
    """
    under: dict[int, dict[str, None]] = {}
    above: dict[str, list[str]] = {}
    for place, step in enumerate(chain, start=1):
        leaves = {f"r{rule.id}": None for rule in step.rules}
        for fact in step.facts:
            leaves |= under.get(fact.id, {f"f{fact.id}": None})
        for leaf in leaves:
            above.setdefault(leaf, [])
        if step.conclusion is not None:
            under[step.conclusion.id] = leaves
            for leaf in leaves:
                above[leaf].append(f"s{place}")
    return above


CHAINS = Benchmark(
    "chains",
    "ReviseQA reasoning chains as dependency maps: each premise withdrawn, closure and one step.",
    Chains,
    (CLOSURE, ONE_STEP),
    "on RECON, another data set: closure exact on 64 of 64 scenarios, one step on 13, 198 "
    "dependent steps, no false positive (Grounded Continuation, section 4.4).",
    "the scenarios of ReviseQA, JSON Lines.",
)
