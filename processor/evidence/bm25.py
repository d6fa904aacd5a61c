"""BM25 (Robertson and Zaragoza 2009): which passages have the words of a question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import log

from processor.evidence.key import normalised

_WORD = re.compile(r"\w+")
_SATURATION = 1.5
_LENGTH = 0.75


def ranked(texts: Sequence[str], question: str) -> list[int]:
    """The places of the texts, best first; of equal ones the later first."""
    words = [Counter(_words(text)) for text in texts]
    lengths = [sum(counted.values()) for counted in words]
    mean = sum(lengths) / max(1, len(texts)) or 1.0
    having = Counter(word for counted in words for word in counted)
    asked = dict.fromkeys(_words(question))

    def score(place: int) -> float:
        counted, total = words[place], 0.0
        damped = _SATURATION * (1 - _LENGTH + _LENGTH * lengths[place] / mean)
        for word in asked:
            count = counted[word]
            if count:
                rare = log(1 + (len(texts) - having[word] + 0.5) / (having[word] + 0.5))
                total += rare * count * (_SATURATION + 1) / (count + damped)
        return total

    scores = [score(place) for place in range(len(texts))]
    return sorted(range(len(texts)), key=lambda place: (-scores[place], -place))


def _words(text: str) -> list[str]:
    return _WORD.findall(normalised(text))
