"""The incremental digests equal the plain ones, and say no more and no less than they should."""

from __future__ import annotations

import hashlib
from random import Random

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from processor.engine.digest import state_digest
from processor.engine.hash_tree import HashTree, plain_root
from processor.engine.snapshot import SnapshotFormatError, dump, load
from tests.engine.given import Given, observe, question, resolve, revise, support, undermine


def leaf(number: int) -> bytes:
    """Some 32 bytes."""
    return hashlib.sha256(str(number).encode()).digest()


@for_all(
    st.lists(st.tuples(st.integers(0, 600), st.booleans(), st.booleans()), max_size=60),
)
def test_the_tree_equals_its_plain_root(changes: list[tuple[int, bool, bool]]) -> None:
    """After any changes, emptied leaves included, the root is that of the leaves alone."""
    tree = HashTree()
    leaves: list[bytes] = []
    for number, (index, empty, ask) in enumerate(changes):
        value = bytes(32) if empty else leaf(number)
        tree.set(index, value)
        leaves.extend([bytes(32)] * (index + 1 - len(leaves)))
        leaves[index] = value
        while leaves and leaves[-1] == bytes(32):
            leaves.pop()
        if ask:
            assert tree.root() == plain_root(leaves)
    assert tree.root() == plain_root(leaves)


def test_the_number_of_leaves_is_part_of_the_root() -> None:
    """A tree of one inner node does not pass for its children."""
    below = HashTree()
    for index in range(32):
        below.set(index, leaf(index))
    above = HashTree()
    for start in (0, 16):
        children = b"".join(leaf(index) for index in range(start, start + 16))
        above.set(start // 16, hashlib.sha256(children).digest())
    assert below.root() != above.root()


def random_conversation(seed: int, turns: int = 40) -> Given:
    """Many operations of every kind; some are refused."""
    chance = Random(seed)
    given = Given()
    ids = ["r0"]
    for turn in range(1, turns):
        new = f"r{turn}"
        target, other = chance.choice(ids), chance.choice(ids)
        operation = chance.choice(
            [
                observe(new, target),
                support(target, other),
                undermine(target, other),
                revise(target, other),
                resolve(target, subsumes=[other], answers=[other]),
                question(f"q{turn}"),
            ]
        )
        given.say(observe(new) if turn < 5 else operation)
        ids.append(new)
    return given


@pytest.mark.parametrize("seed", range(10))
def test_the_state_digest_equals_the_one_from_the_state_alone(seed: int) -> None:
    """Kept up to date or computed in full, the digest is the same."""
    conversation = random_conversation(seed).conversation
    assert conversation.state_digest() == state_digest(conversation.state)


@pytest.mark.parametrize("seed", range(10))
def test_a_snapshot_is_the_whole_conversation(seed: int) -> None:
    """Loaded again, a conversation has the same bytes and digests and goes on the same way."""
    given = random_conversation(seed)
    loaded = load(dump(given.conversation))
    assert dump(loaded) == dump(given.conversation)
    assert loaded.state_digest() == given.conversation.state_digest()
    for record, again in zip(
        given.conversation.state.records.values(), loaded.state.records.values(), strict=True
    ):
        assert (record.grounded, record.core_grounded, record.standing, record.committed) == (
            again.grounded,
            again.core_grounded,
            again.standing,
            again.committed,
        )
    other = Given()
    other.conversation, other.count = loaded, given.count
    given.say(observe("later", "r1"))
    other.say(observe("later", "r1"))
    assert loaded.digest == given.conversation.digest
    assert loaded.state_digest() == given.conversation.state_digest()


def test_a_snapshot_of_another_format_is_refused() -> None:
    """It is never read as if it were of this format."""
    with pytest.raises(SnapshotFormatError):
        load(b'{"format": 0}')


def test_what_is_said_changes_the_digest_and_how_it_came_does_not() -> None:
    """The chain covers the content of an event, not its text or its transport."""

    def digest(**fields: object) -> str:
        given = Given()
        given.say(observe("o1"), **fields)
        return given.conversation.digest

    assert digest() == digest(text="other words", metadata={"source": "mail"})
    assert digest() == digest(at="2026-03-01T03:31:00+01:00")
    assert digest() != digest(at="2026-03-01T02:31:01Z")
    assert digest() != digest(speaker="bob")
    assert digest() != digest(role="tool")
    assert digest() != digest(audience=["ann"])
    assert digest(audience=["ann", "bob"]) == digest(audience=["bob", "ann"])


def test_a_record_that_is_touched_often_costs_one_hash_each_time() -> None:
    """A record with a thousand supports has the digest that it has from the state alone."""
    given = Given()
    given.say(observe("h"))
    for start in range(0, 1_000, 100):
        given.say(
            *(
                support("h", {"record": f"e{number}", "claim": "again"})
                for number in range(start, start + 100)
            )
        )
        given.conversation.state_digest()
    assert given.conversation.state_digest() == state_digest(given.conversation.state)
