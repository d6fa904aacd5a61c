"""FactConsolidation through the ledger: what is in force, and what a question is handed."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from processor.evidence.key import Key, normalised
from processor.evidence.memories import Memory
from processor.evidence.reach import Index
from processor.evidence.renders import render
from processor.render.memory import memory_of
from replay.evaluate.adapters.memab_fc import parse_context, read_contexts, utterances
from schemas.evidence import MemoryClass, RenderFormat
from tests.scenarios.native_log import fold_all

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # how it opens its own data
    from bpe_openai import get_encoding

MULTI_HOP, SINGLE_HOP = 0, 1


@pytest.fixture(scope="module")
def published(shared_data: Path) -> Path:
    """The published 6K stream."""
    return shared_data / "memab_fc" / "factconsolidation_6k.json"


@pytest.fixture(scope="module")
def ledger(published: Path) -> Memory:
    """The ledger after the whole stream."""
    return memory_of(fold_all(utterances(published)), MemoryClass.LEDGER)


def questions(published: Path, part: int) -> list[tuple[str, list[str]]]:
    """The questions of one part with their gold answers."""
    data: Any = json.loads(published.read_text())["data"][part]
    return list(zip(data["questions"], data["answers"], strict=True))


def values(ledger: Memory, keys: tuple[Key, ...]) -> list[str]:
    """The values in force of these keys."""
    return [holding.facts[0].said for key in keys for holding in ledger.rows[key].live]


def tokens(text: str) -> int:
    """How many tokens cl100k makes of the text."""
    return len(get_encoding("cl100k_base").encode(text))


@pytest.mark.data
def test_294_slots_are_in_force_and_161_facts_are_superseded(ledger: Memory) -> None:
    """Of 455 facts each is live or closed, and no slot has two values."""
    rows = ledger.rows.values()
    live = sum(len(holding.facts) for row in rows for holding in row.live)
    assert (len(rows), live, sum(len(row.closed) for row in rows)) == (294, 294, 161)
    assert not any(row.is_unresolved for row in rows)


@pytest.mark.data
def test_time_order_alone_supersedes_the_same_slots(published: Path, ledger: Memory) -> None:
    """Without the relations that the adapter gives, one source replaces its own values."""
    bare = []
    for utterance in utterances(published):
        observe = (utterance.operations or ())[0]
        assert observe.op == "observe"
        (atom,) = observe.atoms
        silent = atom.model_copy(update={"relation": None, "of": None})
        operation = observe.model_copy(update={"atoms": (silent,)})
        bare.append(utterance.model_copy(update={"operations": (operation,)}))
    conversation = fold_all(bare)
    by_rule = memory_of(conversation, MemoryClass.LEDGER)
    finer = 0
    for key, row in by_rule.rows.items():
        assert values(by_rule, (key,)) == values(ledger, (key,))
        finer += sum(closed.relation == "refines" for closed in row.closed)
    fallen = sum(not record.stands for record in conversation.state.records.values())
    assert fallen + finer == 161


@pytest.mark.data
def test_single_hop_questions_are_handed_the_gold_and_nothing_superseded(
    published: Path, ledger: Memory
) -> None:
    """100 of 100 with the keys of the named entities alone; no closed value of a key is shown."""
    index = Index(ledger)
    shown, spent = 0, []
    for question, gold in questions(published, SINGLE_HOP):
        keys = index.reached(question, hops=1)
        text = render(ledger, RenderFormat.MINIMAL, tokens, 10_000, keys)
        shown += any(normalised(each) in values(ledger, keys) for each in gold)
        lines = dict(zip(keys, text.splitlines(), strict=True))
        for key, line in lines.items():
            told = line.partition(" = ")[2]
            assert [normalised(told)] == values(ledger, (key,))
        spent.append(tokens(text))
    assert shown == 100
    assert mean(spent) <= 174


@pytest.mark.data
def test_multi_hop_questions_are_handed_the_gold(published: Path, ledger: Memory) -> None:
    """At least 96 of 100 with the keys that four steps reach, in far fewer tokens than the text."""
    index = Index(ledger)
    shown, spent = 0, []
    for question, gold in questions(published, MULTI_HOP):
        keys = index.reached(question)
        shown += any(normalised(each) in values(ledger, keys) for each in gold)
        spent.append(tokens(render(ledger, RenderFormat.MINIMAL, tokens, 10_000, keys)))
    (context,) = read_contexts(published)
    assert len(parse_context(context)) == 455
    assert shown >= 96
    assert mean(spent) <= 174
    assert tokens(context) > 30 * mean(spent)
