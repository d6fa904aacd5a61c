"""Which keys a question needs: those of the entities it names, and of what is reached from these.

A row leads on if its value in force is itself an entity of the memory. So the evidence for a
question of several steps is gathered without knowing the steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from processor.evidence.key import Key, normalised
from processor.evidence.memories import Memory

HOPS = 4
_WORDS = re.compile(r"\w+|[^\w\s]")


class Index:
    """The entities of a memory and their keys, for questions in words."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._keys: dict[str, list[Key]] = {}
        keys = memory.keys()
        for key in keys:
            self._keys.setdefault(key.entity, []).append(key)
        self._by_words = {_words(entity): entity for entity in self._keys}
        self._longest = max(map(len, self._by_words), default=0)

    def named(self, question: str) -> tuple[str, ...]:
        """The entities that the question names, the longest where one is part of another."""
        words = _words(normalised(question))
        found: dict[str, None] = {}
        place = 0
        while place < len(words):
            for length in range(min(self._longest, len(words) - place), 0, -1):
                entity = self._by_words.get(words[place : place + length])
                if entity is not None:
                    found[entity] = None
                    place += length - 1
                    break
            place += 1
        return tuple(found)

    def reached(self, question: str, hops: int = HOPS) -> tuple[Key, ...]:
        """The keys of the named entities and of what lies at most so many steps behind them.

        Nearer ones first.
        """
        keys: dict[Key, None] = {}
        entities = dict.fromkeys(self.named(question))
        front = list(entities)
        for _ in range(hops):
            new = [key for entity in front for key in self._keys.get(entity, ())]
            keys |= dict.fromkeys(new)
            values = dict.fromkeys(value for key in new for value in self._values(key))
            front = [each for each in values if each in self._keys and each not in entities]
            entities |= dict.fromkeys(front)
        return tuple(keys)

    def _values(self, key: Key) -> Iterator[str]:
        for holding in self._memory.rows[key].live:
            if holding.facts[0].polarity:
                yield holding.facts[0].said


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORDS.findall(text))
