"""A sequence that grows, as a value: no version sees what came to another."""

from __future__ import annotations

from random import Random

import pytest

from processor.evidence.appended import Appended


def test_every_version_stays_what_it_was() -> None:
    """Versions that go on from any earlier one, in any order, hold what plain tuples hold."""
    for seed in range(200):
        chance = Random(seed)
        versions: list[tuple[Appended[int], tuple[int, ...]]] = [(Appended(), ())]
        for item in range(30):
            grown, plain = chance.choice(versions)
            more = [item] * chance.randrange(3)
            versions.append((grown.plus(more), (*plain, *more)))
        assert [tuple(grown) for grown, _ in versions] == [plain for _, plain in versions]
        assert [len(grown) for grown, _ in versions] == [len(plain) for _, plain in versions]


def test_items_are_found_by_their_place_and_no_further() -> None:
    """A place counts from either end of this version, and beyond it there is nothing."""
    first = Appended("ab")
    first.plus("c")
    assert (first[0], first[1], first[-1]) == ("a", "b", "b")
    with pytest.raises(IndexError):
        first[2]


def test_equal_items_make_equal_sequences() -> None:
    """However they came about; one more item makes another sequence."""
    assert Appended("ab") == Appended("a").plus("b")
    assert hash(Appended("ab")) == hash(Appended("a").plus("b"))
    assert Appended("ab") != Appended("a")
    assert Appended("a") != ("a",)
