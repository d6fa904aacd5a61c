"""Sentence embeddings in NumPy: equal to the definition, and a baseline that retrieves by them."""

from __future__ import annotations

from collections.abc import Sequence
from math import erf, exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from replay.evaluate import embeddings, retrieval
from replay.evaluate.benchmark import BenchmarkError, Options
from replay.evaluate.embeddings import Encoder, mini_lm
from replay.evaluate.extra import ExtraMissing
from replay.evaluate.retrieval import Nearest
from replay.evaluate.suites import memab_fc
from replay.evaluate.suites.conversations import LOCOMO
from replay.evaluate.suites.memab_fc import MEMAB_FC, RAG_EMBEDDINGS
from tests.evaluate.test_with_a_model import STREAM

WIDTH, INNER, HEADS, LAYERS, WORDS = 8, 12, 2, 2, 40


def weights() -> dict[str, Any]:
    """Weights of a small model, at random, under the names of the published one."""
    random = np.random.default_rng(4)
    made: dict[str, Any] = {
        "embeddings.word_embeddings.weight": random.normal(size=(WORDS, WIDTH)),
        "embeddings.position_embeddings.weight": random.normal(size=(300, WIDTH)),
        "embeddings.token_type_embeddings.weight": random.normal(size=(2, WIDTH)),
    }

    def dense(name: str, out: int, into: int) -> None:
        made[f"{name}.weight"] = random.normal(size=(out, into))
        made[f"{name}.bias"] = random.normal(size=out)

    def normal(name: str) -> None:
        made[f"{name}.weight"], made[f"{name}.bias"] = random.normal(size=(2, WIDTH))

    normal("embeddings.LayerNorm")
    for layer in (f"encoder.layer.{number}" for number in range(LAYERS)):
        for part in ("query", "key", "value"):
            dense(f"{layer}.attention.self.{part}", WIDTH, WIDTH)
        dense(f"{layer}.attention.output.dense", WIDTH, WIDTH)
        normal(f"{layer}.attention.output.LayerNorm")
        dense(f"{layer}.intermediate.dense", INNER, WIDTH)
        dense(f"{layer}.output.dense", WIDTH, INNER)
        normal(f"{layer}.output.LayerNorm")
    return made


def split(text: str) -> list[int]:
    """A token for each letter."""
    return [1, *(ord(letter) % WORDS for letter in text), 2]


def slowly(given: dict[str, Any], text: str) -> list[float]:
    """The embedding by its definition, number by number."""

    def dense(name: str, row: Sequence[float]) -> list[float]:
        weight, bias = given[f"{name}.weight"], given[f"{name}.bias"]
        return [
            sum(w * x for w, x in zip(each, row, strict=True)) + b
            for each, b in zip(weight, bias, strict=True)
        ]

    def normal(name: str, row: Sequence[float]) -> list[float]:
        mean = sum(row) / len(row)
        spread = sqrt(sum((x - mean) ** 2 for x in row) / len(row) + 1e-12)
        weight, bias = given[f"{name}.weight"], given[f"{name}.bias"]
        return [(x - mean) / spread * w + b for x, w, b in zip(row, weight, bias, strict=True)]

    def added(one: Sequence[float], other: Sequence[float]) -> list[float]:
        return [x + y for x, y in zip(one, other, strict=True)]

    part = {name: given[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position")}
    kind = given["embeddings.token_type_embeddings.weight"][0]
    rows = [
        normal("embeddings.LayerNorm", added(added(part["word"][id_], part["position"][i]), kind))
        for i, id_ in enumerate(split(text))
    ]
    size = WIDTH // HEADS
    for layer in (f"encoder.layer.{number}" for number in range(LAYERS)):
        told = {
            name: [dense(f"{layer}.attention.self.{name}", row) for row in rows]
            for name in ("query", "key", "value")
        }
        attended: list[list[float]] = [[] for _ in rows]
        for head in (slice(h * size, (h + 1) * size) for h in range(HEADS)):
            for place, query in enumerate(told["query"]):
                scores = [
                    sum(q * k for q, k in zip(query[head], key[head], strict=True)) / sqrt(size)
                    for key in told["key"]
                ]
                shares = [exp(score - max(scores)) for score in scores]
                attended[place] += [
                    sum(s * v[head][d] for s, v in zip(shares, told["value"], strict=True))
                    / sum(shares)
                    for d in range(size)
                ]
        out = f"{layer}.attention.output"
        rows = [
            normal(f"{out}.LayerNorm", added(row, dense(f"{out}.dense", each)))
            for row, each in zip(rows, attended, strict=True)
        ]
        inner = [dense(f"{layer}.intermediate.dense", row) for row in rows]
        inner = [[x * (1 + erf(x / sqrt(2))) / 2 for x in row] for row in inner]
        rows = [
            normal(f"{layer}.output.LayerNorm", added(row, dense(f"{layer}.output.dense", each)))
            for row, each in zip(rows, inner, strict=True)
        ]
    mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    length = sqrt(sum(x * x for x in mean))
    return [x / length for x in mean]


def test_an_embedding_is_what_the_definition_says_whatever_stands_beside_it() -> None:
    """Equal to a slow computation, alone and in a batch with longer and shorter texts."""
    given = weights()
    encoder = Encoder(given, split, HEADS)
    texts = ["a pool", "b", "the timeout of the pool", "", "a pool"] * 9
    together = encoder.encode(texts)
    assert together.shape == (45, WIDTH)
    for text in dict.fromkeys(texts):
        expected = slowly(given, text)
        assert encoder.encode([text])[0].tolist() == pytest.approx(expected)
        for place in (place for place, each in enumerate(texts) if each == text):
            assert together[place].tolist() == pytest.approx(expected)


def test_of_a_long_text_the_beginning_counts() -> None:
    """What comes after the length that the model was trained for changes nothing."""
    encoder = Encoder(weights(), split, HEADS)
    long = encoder.encode(["x" * 400, "x" * 255 + "y" * 100])
    assert long[0].tolist() == pytest.approx(long[1].tolist())


class Letters:
    """An encoder by the letters of a text, so that likeness is known beforehand."""

    def encode(self, texts: Sequence[str]) -> Any:
        """How often each letter is there, scaled to length one."""
        rows = np.array([[text.count(chr(97 + n)) for n in range(26)] for text in texts], float)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_nearest_texts_come_in_the_order_of_the_stream() -> None:
    """The best by likeness, of equal ones the first, and no more than there are."""
    nearest = Nearest(["zz", "ab", "az", "ab", "ba"], Letters())  # type: ignore[arg-type]
    assert nearest.best("ab", 2) == (1, 3)
    assert nearest.best("ab", 3) == (1, 3, 4)
    assert nearest.best("z", 9) == (0, 1, 2, 3, 4)


def test_the_arm_is_measured_only_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs packages of its own, and says in one line how they are had."""
    for benchmark in (MEMAB_FC, LOCOMO):
        assert RAG_EMBEDDINGS not in benchmark.arms_for(False, ())
        assert benchmark.arms_for(True, [RAG_EMBEDDINGS]) == (RAG_EMBEDDINGS,)
        with pytest.raises(BenchmarkError, match=RAG_EMBEDDINGS):
            benchmark.arms_for(False, ["rag_magic"])
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    mini_lm.cache_clear()
    with pytest.raises(ExtraMissing, match="make embeddings") as missing:
        mini_lm()
    assert "\n" not in str(missing.value)


def test_the_arm_hands_over_the_nearest_facts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As lines of the stream, with what is superseded among them counted."""
    path = tmp_path / "stream.json"
    path.write_bytes(orjson.dumps(STREAM))
    monkeypatch.setattr(retrieval, "mini_lm", Letters)
    monkeypatch.setattr(memab_fc, "FACTS", 1)
    workload = MEMAB_FC.load(Options(path))
    handed = [workload.question(item, RAG_EMBEDDINGS).context for item in workload.items]
    assert handed == ["2. The capital of Toyland is Stoneby."] * 2
    (first, second) = (workload.measure(item, RAG_EMBEDDINGS) for item in workload.items)
    assert (first["gold_in_evidence"], second["gold_in_evidence"]) == (0, 1)
    assert first["superseded_shown"] == 0
