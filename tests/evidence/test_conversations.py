"""Random conversations with atoms: the ledger kept, the ledger made up again, and the map agree."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from processor.engine.conversation import Conversation
from processor.engine.snapshot import dump, load
from processor.engine.verify import walk_is_core_grounded, walk_is_grounded
from processor.evidence.projection import ledger_of, made_up, revision
from schemas.derived import Standing
from schemas.evidence import Relation
from tests.engine.given import Given, hypothesize, observe, revise, undermine

Json = dict[str, Any]


def random_operations(dice: Random, known: list[str], number: int) -> list[Json]:
    """What one turn says: observations with atoms, now and then a revision or an attack."""
    operations: list[Json] = []
    for part in range(dice.choice((1, 1, 2))):
        record = f"o{number}-{part}"
        atoms = [random_atom(dice, known) for _ in range(dice.choice((0, 1, 1, 1, 2)))]
        premises = [dice.choice(known)] if known and dice.random() < 0.4 else []
        operations.append(observe(record, *premises, atoms=atoms))
        if known and dice.random() < 0.15:
            operations.append(revise(dice.choice(known), record))
        if known and dice.random() < 0.1:
            operations.append(undermine(dice.choice(known), record))
        if known and dice.random() < 0.3:
            operations.append(hypothesize(f"h{number}-{part}", dice.choice(known)))
    return operations


def random_atom(dice: Random, known: list[str]) -> Json:
    """An atom of one of three keys."""
    relation = dice.choice([None] * 6 + [each.value for each in Relation])
    named = known and relation is not None and dice.random() < 0.5
    return {
        "entity": "pool",
        "attribute": dice.choice(("timeout", "size", "owner")),
        "value": dice.choice(("30 s", "60 s", "60 s on linux", "90 s")),
        "polarity": dice.random() < 0.9,
        "valid_from": dice.choice((None, None, None, "2010", "2012", "2015")),
        "relation": relation,
        "of": [dice.choice(known)] if named else None,
    }


def check_map_against_ledger(conversation: Conversation) -> None:
    """What the rows say of the records behind them is what the map says."""
    state, rows = conversation.state, ledger_of(conversation).rows.values()
    by_atoms: set[str] = set()
    for row in rows:
        place = {c.fact.place: c.fact.record for c in row.closed}
        place |= {f.place: f.record for holding in row.live for f in holding.facts}
        for closed in row.closed:
            replaced = closed.relation is Relation.SUPERSEDES and closed.by is not None
            if replaced and place[closed.by or 0] != closed.fact.record:
                by_atoms.add(closed.fact.record)
        for pair in row.open_conflicts():
            sides = [[fact.record for fact in side.facts] for side in pair]
            if all(state.records[id_].standing != "abandoned" for ids in sides for id_ in ids):
                assert all(any(id_ in state.disputed for id_ in ids) for ids in sides)
    for record in state.records.values():
        fallen = record.standing is Standing.ABANDONED
        assert fallen == (record.id in by_atoms or revision(record) is not None), record.id
        assert record.grounded == walk_is_grounded(record)
        assert record.core_grounded == walk_is_core_grounded(record)


def check_conversations(seeds: Iterable[int], roles: tuple[str, ...] = ()) -> None:
    """Say random things twice, once going on from bytes each time, and compare everything.

    With roles only the ledger and the bytes are compared, not the map with the rows.
    """
    for seed in seeds:
        dice, one, other = Random(seed), Given(), Given()
        for number in range(10):
            known = list(one.conversation.state.records)
            operations = random_operations(dice, known, number)
            speaker = dice.choice(("ann", "bob"))
            role = {"role": dice.choice(roles)} if roles else {}
            one.say(*operations, speaker=speaker, **role)
            other.conversation = load(dump(other.conversation))
            other.say(*operations, speaker=speaker, **role)
            kept, again = ledger_of(one.conversation), made_up(one.conversation)
            assert dict(kept.rows) == dict(again.rows), seed
            assert kept.count == again.count
            assert other.conversation.digest == one.conversation.digest, seed
            assert other.conversation.state_digest() == one.conversation.state_digest()
            if not roles:
                check_map_against_ledger(one.conversation)


def test_random_conversations_agree_with_themselves_from_bytes_and_with_the_map() -> None:
    """Nothing is retired but what was superseded or revised, and open conflicts are disputed."""
    check_conversations(
        [*range(40), 725]
    )  # the last: a holding gains a conflict, then loses a record


def test_what_is_not_permitted_is_remembered_in_bytes() -> None:
    """The same where users and tools speak: what was protected is so after a snapshot, too."""
    check_conversations([*range(40), 290], ("user", "tool"))  # the last: one of its atoms is late


@pytest.mark.thorough
def test_many_random_conversations_agree() -> None:
    """The same in 2,000 conversations."""
    check_conversations(range(40, 2_000))
