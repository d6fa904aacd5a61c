"""The baselines: the k best statements in the order of the stream, by words or by likeness.

By words is BM25 (bm25s), by likeness the product of sentence embeddings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from replay.evaluate.embeddings import Encoder, mini_lm
from replay.evaluate.extra import needed

STATEMENTS, FACTS = 22, 50
"""How many the paper's baseline retrieves: of statements, of facts."""


@final
class Retriever:
    """An index over texts, of which there may be none. Raises ExtraMissing."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._bm25s: Any = needed("bm25s")
        words = self._split(list(texts))
        self._has_words = any(words.ids)
        if self._has_words:
            self._index = self._bm25s.BM25()
            self._index.index(words, show_progress=False)

    def best(self, question: str, count: int) -> tuple[int, ...]:
        """The places of the best texts, ascending; the first ones if no text has a word."""
        wanted = min(count, len(self._texts))
        if not self._has_words:
            return tuple(range(wanted))
        asked = self._split([question])
        found, _ = self._index.retrieve(asked, k=wanted, show_progress=False)
        return tuple(sorted(int(place) for place in found[0]))

    def _split(self, texts: list[str]) -> Any:
        return self._bm25s.tokenize(texts, stopwords="en", show_progress=False)


@final
class Nearest:
    """Texts by the likeness of their embeddings to a question's. Raises ExtraMissing."""

    def __init__(self, texts: Sequence[str], encoder: Encoder | None = None) -> None:
        self._encoder = encoder or mini_lm()
        self._vectors: Any = self._encoder.encode(texts)

    def best(self, question: str, count: int) -> tuple[int, ...]:
        """The places of the texts that are most alike, ascending; of equal ones the first."""
        likeness = (self._vectors @ self._encoder.encode([question])[0]).tolist()
        order = sorted(range(len(likeness)), key=lambda place: -likeness[place])
        return tuple(sorted(order[:count]))
