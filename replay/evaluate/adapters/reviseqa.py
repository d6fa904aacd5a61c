"""ReviseQA: reasoning chains as dependency maps.

The file is JSON Lines, one scenario a line. Its `reasoning_chain` is a list of steps, each from
facts and rules to a conclusion, and a conclusion is a fact of later steps. A scenario is one
conversation: first every fact and rule of the chain that no step concludes, each observed in a turn
of its own, then one turn per step, a hypothesis that rests on the step's facts and rules. No
formulas are given.

Records: `f3` for fact 3, `r0` for rule 0, `s1` for the conclusion of the first step. Two things of
the data need care. A few steps have no conclusion: they derive nothing and make no record, though
their facts and rules are observed. In a few chains the last conclusion has the id of an earlier one
with another sentence, so a step is named by its place, and a fact means the latest conclusion with
its id before the step that cites it.

Source: Helwe et al., ReviseQA, ChadiHelwe/reviseqa.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from replay.evaluate.adapters import AdapterError, Published, moment, parse_published, run_command
from schemas.operations import Hypothesize, Observe
from schemas.utterance import Utterance

CONTEXT_SPEAKER = "context"
CHAIN_SPEAKER = "reasoner"


class Statement(Published):
    """A fact, a rule or a conclusion; facts and conclusions share one numbering."""

    id: int
    text: str


class Step(Published):
    """One derivation; `conclusion` is None where it led nowhere."""

    facts: tuple[Statement, ...]
    rules: tuple[Statement, ...]
    conclusion: Statement | None


class Scenario(Published):
    """The part of a scenario that its reasoning needs."""

    id: str
    reasoning_chain: tuple[Step, ...]


def read_scenarios(path: Path) -> Iterator[Scenario]:
    """The scenarios of a published file in order. Raises AdapterError, OSError."""
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            yield parse_published(Scenario, line, f"{path}:{number}")


def premise_ids(scenario: Scenario) -> tuple[str, ...]:
    """The records of the facts and rules that the chain starts from, in order of first use."""
    return tuple(_premises(scenario))


def step_ids(scenario: Scenario) -> tuple[str, ...]:
    """The records of the conclusions, in the order of their steps."""
    return tuple(id_ for id_, _, _ in _derivations(scenario))


def scenario_utterances(scenario: Scenario) -> Iterator[Utterance]:
    """One utterance per premise, then one per step with a conclusion. Raises AdapterError."""
    operations: list[Observe | Hypothesize] = [
        Observe(op="observe", record=id_, claim=text) for id_, text in _premises(scenario).items()
    ]
    operations.extend(
        Hypothesize(op="hypothesize", record=id_, claim=text, premises=premises)
        for id_, text, premises in _derivations(scenario)
    )
    for place, operation in enumerate(operations):
        yield _utterance(scenario.id, place, operation)


def utterances(path: Path) -> Iterator[Utterance]:
    """Every scenario of a published file, one conversation each, named by the scenario's id."""
    for scenario in read_scenarios(path):
        yield from scenario_utterances(scenario)


def _premises(scenario: Scenario) -> dict[str, str]:
    """Record id -> sentence of what the chain starts from, in order of first use."""
    found: dict[str, str] = {}
    concluded: dict[int, str] = {}
    for place, step in enumerate(scenario.reasoning_chain, start=1):
        leaves = [(f"f{fact.id}", fact.text) for fact in step.facts if fact.id not in concluded]
        for id_, text in (*leaves, *((f"r{rule.id}", rule.text) for rule in step.rules)):
            if found.setdefault(id_, text) != text:
                raise AdapterError(f"{scenario.id}: {id_} stands for two sentences")
        if step.conclusion is not None:
            concluded[step.conclusion.id] = f"s{place}"
    return found


def _derivations(scenario: Scenario) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Record id, sentence and premises of each step that concludes something."""
    concluded: dict[int, str] = {}
    for place, step in enumerate(scenario.reasoning_chain, start=1):
        if step.conclusion is None:
            continue
        facts = [concluded.get(fact.id, f"f{fact.id}") for fact in step.facts]
        premises = dict.fromkeys([*facts, *(f"r{rule.id}" for rule in step.rules)])
        yield f"s{place}", step.conclusion.text, tuple(premises)
        concluded[step.conclusion.id] = f"s{place}"


def _utterance(conversation: str, place: int, operation: Observe | Hypothesize) -> Utterance:
    speaker = CONTEXT_SPEAKER if isinstance(operation, Observe) else CHAIN_SPEAKER
    return Utterance(
        conversation_id=conversation,
        utterance_id=f"u{place}",
        speaker=speaker,
        text=operation.claim,
        at=moment(place),
        operations=(operation,),
    )


if __name__ == "__main__":
    sys.exit(run_command(utterances, sys.argv[1:]))
