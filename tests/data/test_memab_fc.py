"""FactConsolidation as a conversation: every fact is read, and the newest of a slot stands."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from processor.engine.retraction import affected_by_ids
from replay.evaluate.adapters import AdapterError, line_of, run_command
from replay.evaluate.adapters.memab_fc import (
    TEMPLATES,
    Fact,
    parse_context,
    parse_fact,
    read_contexts,
    stream_utterances,
    utterances,
)
from schemas.derived import Standing
from schemas.operations import Observe, Revise
from schemas.wire import decode_utterance
from tests.scenarios.native_log import fold_all

SMALL = """Here is a list of facts:
0. The capital of Norway is Bergen.
1. Ada Moe is a citizen of Norway.
2. The capital of Norway is Oslo.
3. The capital of Norway is Oslo.
4. The capital of Norway is Tromsø.
"""


@pytest.fixture
def stream(shared_data: Path) -> Path:
    """The published 6K stream."""
    return shared_data / "memab_fc" / "factconsolidation_6k.json"


def write_file(folder: Path, *contexts: str) -> Path:
    """A file of our own in the published format."""
    path = folder / "facts.json"
    path.write_text(json.dumps({"data": [{"context": c, "questions": []} for c in contexts]}))
    return path


@pytest.mark.parametrize("relation", TEMPLATES)
def test_every_template_reads_its_own_sentence_and_no_other_does(relation: str) -> None:
    """A sentence of a template gives back its relation, subject and value, and fits no other."""
    sentence = TEMPLATES[relation].format(x="Ola Li's son", y="Acme Inc.")
    fact = parse_fact(f"7. {sentence}.")
    assert fact == Fact(7, f"{sentence}.", "Ola Li's son", relation, "Acme Inc.")


def test_a_value_keeps_its_own_full_stop() -> None:
    """Only the sentence's full stop is dropped."""
    assert parse_fact("5. Ada worked in the city of Washington, D.C..").value == "Washington, D.C."


@pytest.mark.parametrize(
    "line",
    [
        "8. Ada likes cheese.",
        "The capital of Norway is Oslo.",
        "8. The capital of Norway is Oslo",
        "8. Ada was founded by Ola was created by Kari.",
    ],
    ids=["no template", "no number", "no full stop", "two templates"],
)
def test_a_line_that_is_not_read_in_exactly_one_way_is_an_error(line: str) -> None:
    """An unknown or ambiguous sentence stops the adapter; no fact is skipped."""
    with pytest.raises(AdapterError, match="fact"):
        parse_fact(line)


def test_a_later_fact_revises_the_standing_facts_of_its_slot_with_another_value() -> None:
    """A new value revises every fact it replaces; the same value again revises nothing."""
    revised = {
        utterance.utterance_id: [
            operation.target for operation in utterance.operations or () if operation.op == "revise"
        ]
        for utterance in stream_utterances(parse_context(SMALL), "c")
    }
    assert revised == {"u0": [], "u1": [], "u2": ["f0"], "u3": [], "u4": ["f2", "f3"]}
    state = fold_all(stream_utterances(parse_context(SMALL), "c")).state
    assert [record.id for record in state.standing_records()] == ["f1", "f4"]


def test_streams_that_share_a_context_are_one_conversation(tmp_path: Path) -> None:
    """Two question sets over one stream give its utterances once; another stream is another."""
    path = write_file(tmp_path, SMALL, SMALL, "0. Ada Moe is a citizen of Norway.")
    count = Counter(utterance.conversation_id for utterance in utterances(path))
    assert count == {"memab-fc-0": 5, "memab-fc-1": 1}


def test_the_command_writes_lines_that_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the command prints decodes to the same utterances, byte for byte the same each time."""
    path = write_file(tmp_path, SMALL)
    assert run_command(utterances, [str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert tuple(decode_utterance(line.encode()) for line in lines) == tuple(utterances(path))
    assert lines == [line_of(utterance) for utterance in utterances(path)]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [([], "usage"), (["missing.json"], "missing.json"), (["bad.json"], "bad.json: data")],
    ids=["no path", "no file", "another format"],
)
def test_the_command_refuses_what_it_cannot_use(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Bad usage and bad input exit with 2 and one line on standard error that says where."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text('{"data": 3}')
    assert run_command(utterances, arguments) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


@pytest.mark.data
def test_every_fact_of_the_stream_is_read(stream: Path) -> None:
    """The 6K stream is one conversation of 455 facts, numbered without gaps."""
    (context,) = read_contexts(stream)
    assert [fact.number for fact in parse_context(context)] == list(range(455))


@pytest.mark.data
def test_the_stream_leaves_the_newest_value_of_every_slot(stream: Path) -> None:
    """Of 455 records 294 stand, one per slot and the newest of it, and 161 are abandoned."""
    state = fold_all(utterances(stream)).state
    count = Counter(record.standing for record in state.records.values())
    assert count == {Standing.ACTIVE: 294, Standing.ABANDONED: 161}

    (context,) = read_contexts(stream)
    newest = {fact.slot: fact.record for fact in parse_context(context)}
    assert [record.id for record in state.standing_records()] == sorted(
        newest.values(), key=lambda id_: int(id_[1:])
    )


@pytest.mark.data
def test_no_fact_of_the_stream_rests_on_another(stream: Path) -> None:
    """The stream revises facts of one slot only, so no withdrawal touches another record."""
    state = fold_all(utterances(stream)).state
    assert len(state.attacks) == 161
    for attacker, target in state.attacks:
        assert affected_by_ids(state, (target,)).transitive == ()
        assert atom_key(state.records[attacker].atoms) == atom_key(state.records[target].atoms)


def atom_key(atoms: tuple[object, ...]) -> tuple[object, object]:
    """The slot of a record's single atom."""
    (atom,) = atoms
    return (getattr(atom, "entity", None), getattr(atom, "attribute", None))


@pytest.mark.data
def test_a_revision_names_the_record_its_atom_supersedes(stream: Path) -> None:
    """The ledger and the map are told the same: the atom's `of` are the turn's revised records."""
    for utterance in utterances(stream):
        observe, *revisions = utterance.operations or ()
        assert isinstance(observe, Observe)
        targets = tuple(each.target for each in revisions if isinstance(each, Revise))
        assert (observe.atoms[0].of or ()) == targets
