"""The tier classifiers: trained by a command, kept as numbers, measured beside three others."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import orjson
import pytest
from sklearn.metrics import f1_score

from processor.evidence.linear import CoefficientsError
from processor.evidence.tiers import TIERS, LearnedTiers, Tier, structure_of
from replay.evaluate.benchmark import Options
from replay.evaluate.suites.tiers import TIER_CLASSIFIERS
from replay.evaluate.tier_classifier import ARMS, macro_f1, main, own_streams, tellers
from replay.evaluate.tier_streams import LEARNED_ON, MEASURED_ON, TierStream, made_streams


def stored(streams: tuple[TierStream, ...]) -> bytes:
    """The streams as lines of a file."""
    lines = [
        {
            "tier": stream.tier,
            "atoms": [
                {
                    "entity": fact.entity,
                    "attribute": fact.attribute,
                    "value": fact.value,
                    "source": fact.source,
                    "text": f"{fact.source}: {fact.value}",
                }
                for fact in stream.facts
            ],
        }
        for stream in streams
    ]
    return b"\n".join(map(orjson.dumps, lines))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The coefficients that the command makes of streams of our own."""
    path = tmp_path_factory.mktemp("tiers") / "tiers.json"
    assert main([str(path)]) == 0
    return path


def test_the_command_prints_macro_f1_beside_the_rules_the_words_and_the_majority(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Structure tells more than words, words more than the majority; equal streams, equal bytes."""
    again = tmp_path / "again.json"
    assert main([str(again)]) == 0
    assert again.read_bytes() == trained.read_bytes()
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert "macro-F1" in head
    assert tuple(row.split("|")[1].strip() for row in rows) == ARMS
    rules, structure, words, majority = (float(row.split("|")[4]) for row in rows)
    assert structure >= rules > words > majority == 0.1


def test_the_stored_classifier_is_numbers_and_tells_what_the_trained_one_tells(
    trained: Path,
) -> None:
    """It is read from JSON, and answers as the one it was trained as."""
    values = orjson.loads(trained.read_bytes())
    read = LearnedTiers.from_values(values)
    assert read.to_values() == values
    learned_on, measured_on = own_streams()
    structure = tellers(learned_on)["structure"]
    for stream in measured_on[:200]:
        assert read.tier(structure_of(stream.facts)) is structure(stream)
    for change in ({"features": []}, {"tiers": ["x"]}, {"weights": [[1.0]]}, {"offsets": [None]}):
        with pytest.raises(CoefficientsError, match=next(iter(change))):
            LearnedTiers.from_values({**values, **change})


def test_it_learns_from_a_file_and_keeps_every_fifth_stream_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is measured was not learned from."""
    path = tmp_path / "streams.jsonl"
    path.write_bytes(stored(made_streams(5, 50, LEARNED_ON)))
    assert main([str(tmp_path / "out.json"), str(path)]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert all(row.split("|")[2].strip() == "40" for row in rows)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"tier": "odd", "atoms": []}', "streams.jsonl:1: tier"),
        (b'{"tier": "refines", "atoms": []}', "streams.jsonl:1: atoms"),
        (b"\n{", "streams.jsonl:2: "),
        (stored(made_streams(1, 1, LEARNED_ON)), "fewer than 5 streams"),
        (stored(made_streams(1, 9, LEARNED_ON)[::4]), "fewer than two tiers"),
        (
            orjson.dumps(
                {
                    "tier": "refines",
                    "atoms": [
                        {"entity": each, "attribute": "b", "value": "c"} for each in ("x", "y")
                    ],
                }
            ),
            "streams.jsonl:1: atoms: they have several keys",
        ),
    ],
)
def test_streams_that_cannot_be_learned_from_are_one_line_and_status_2(
    content: bytes, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line and the field at fault are named, and nothing is written."""
    path = tmp_path / "streams.jsonl"
    path.write_bytes(content)
    assert main([str(tmp_path / "out.json"), str(path)]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


def test_macro_f1_is_that_of_scikit_learn() -> None:
    """Over the tiers that the gold labels have, each counted once."""
    for seed, arm in product(range(3), ARMS):
        streams = made_streams(seed, 20, MEASURED_ON)[seed:]
        tell = tellers(made_streams(9, 30, LEARNED_ON))[arm]
        gold, told = [each.tier for each in streams], [tell(each) for each in streams]
        there = [tier for tier in TIERS if tier in gold]
        theirs = f1_score(gold, told, average="macro", labels=there, zero_division=0)
        assert macro_f1(gold, told) == pytest.approx(theirs)
    assert macro_f1([Tier.REFINES], [Tier.MONOTONIC]) == 0


def test_the_benchmark_measures_streams_that_it_has_not_learned_from() -> None:
    """Every arm tells every stream, and the notes have macro-F1 for each."""
    workload = TIER_CLASSIFIERS.load(Options())
    learned_on, measured_on = own_streams()
    assert not {each.text for each in learned_on} & {each.text for each in measured_on}
    items = list(workload.items)[::25]
    scored = {(item.id, arm): workload.measure(item, arm) for item in items for arm in ARMS}
    assert {scores["right"] for scores in scored.values()} == {0.0, 1.0}
    notes = workload.notes(scored)
    assert [note.split(":")[0] for note in notes] == [f"our own streams, {arm}" for arm in ARMS]
    assert all("macro-F1 0." in note for note in notes)
