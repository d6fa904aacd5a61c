"""The learned scorer: trained by a command, kept as numbers, compared with the rules."""

from __future__ import annotations

from pathlib import Path
from random import Random

import orjson
import pytest

from processor.evidence.learned import LearnedScorer
from processor.evidence.ledger import Ledger
from processor.evidence.linear import CoefficientsError
from replay.evaluate.relation_scorer import main, read_pairs, read_scorer
from tests.evidence.streams import random_events

CITIES = ("Oslo", "Bergen", "Rome", "Bern", "Graz", "Lyon", "Turku", "Gent")
HUES = ("red", "blue", "green", "grey")


def labelled(count: int) -> bytes:
    """Pairs of our own making; half of the refinements use words that the rules know nothing of."""
    random = Random(11)
    lines = []
    for _ in range(count):
        city, other = random.sample(CITIES, 2)
        kind = random.choice(["same_state", "refines", "supersedes", "contradicts"])
        old: dict[str, object] = {"value": city, "source": "ann", "turn": 1}
        new: dict[str, object] = {"value": other, "source": "ann", "turn": 2}
        if kind == "same_state":
            new["value"] = city
        elif kind == "refines":
            old["value"] = f"somewhere in {city}"
            near = random.choice(HUES)
            new["value"] = f"the {near} house in {city}" if random.random() < 0.5 else city
            new["value"] = f"{old['value']}, {near}" if random.random() < 0.5 else new["value"]
            new["source"] = random.choice(["ann", "bob"])
        elif kind == "contradicts":
            new["source"] = "bob"
        for side in (old, new):
            side |= {"entity": "Dana", "attribute": "home"}
        lines.append(orjson.dumps({"old": old, "new": new, "relation": kind}))
    return b"\n".join(lines)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs, and the coefficients that the command makes of them."""
    folder = tmp_path_factory.mktemp("scorer")
    (folder / "pairs.jsonl").write_bytes(labelled(600))
    assert main([str(folder / "pairs.jsonl"), str(folder / "scorer.json")]) == 0
    return folder


def test_the_command_prints_the_rules_and_the_learned_scorer_side_by_side(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It recovers refinements that the rules miss, and the same pairs give the same bytes."""
    again = tmp_path / "again.json"
    assert main([str(trained / "pairs.jsonl"), str(again)]) == 0
    assert again.read_bytes() == (trained / "scorer.json").read_bytes()
    head, _, rules, learned = capsys.readouterr().out.splitlines()
    assert "refinement recall | false contradiction" in head
    recall = [float(line.split("|")[4]) for line in (rules, learned)]
    false = [float(line.split("|")[5]) for line in (rules, learned)]
    assert recall[1] > recall[0] > 0
    assert false[1] <= false[0]
    assert "| 120 |" in learned


def test_a_ledger_can_be_folded_with_it(trained: Path) -> None:
    """It stands behind the interface of the rules; what was said with an atom still wins."""
    scorer = read_scorer(trained / "scorer.json")
    for seed in range(50):
        ledger = Ledger()
        ledger.take_all(random_events(seed), scorer)
        assert ledger.rows
    assert LearnedScorer.from_values(orjson.loads(orjson.dumps(scorer.to_values()))) == scorer


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"features": []}, "features"),
        ({"relations": None}, "relations"),
        ({"weights": [[1.0]]}, "weights"),
        ({"offsets": ["x"] * 5}, "offsets"),
        ({"offsets": [True] * 5}, "offsets"),
    ],
)
def test_coefficients_of_another_shape_are_refused(
    trained: Path, change: dict[str, object], complaint: str
) -> None:
    """What is read names its features and relations, and has a number for each."""
    values = orjson.loads((trained / "scorer.json").read_bytes())
    with pytest.raises(CoefficientsError, match=complaint):
        LearnedScorer.from_values({**values, **change})


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"old": 1}', "line 1"),
        (labelled(1).replace(b'"turn":1', b'"turn":"x"'), "line 1: old.turn"),
        (labelled(1), "fewer than two relations"),
        (b"", "fewer than two relations"),
    ],
)
def test_pairs_that_cannot_be_learned_from_are_one_line_and_status_2(
    content: bytes, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line and the field at fault are named."""
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_bytes(content)
    assert main([str(pairs), str(tmp_path / "out.json")]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


def test_pairs_are_read_with_their_sources_and_turns(trained: Path) -> None:
    """What a line leaves out has a default; the newer fact is the later one."""
    pairs = read_pairs(trained / "pairs.jsonl")
    assert len(pairs) == 600
    assert all(pair.old.is_older(pair.new) for pair in pairs)
