"""Erased conversations in the fold, in workers' stores and in what workers share."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from processor.app.erasure import erased_event
from processor.app.interpret import WAS_ERASED, interpret
from processor.engine.conversation import Conversation
from processor.engine.snapshot import dump, load
from processor.evidence.fold import RefusalReason, Refused, advance
from processor.render.reduce import reduce
from processor.vault.errors import KeysAwayError
from processor.vault.held_keys import HeldKeys
from processor.vault.key_folder import KeyFolder
from processor.vault.sealed import Kind, is_sealed
from processor.vault.tenant_keys import KeyFile, add_tenant_key
from processor.vault.vault import Vault
from replay.audit.run import audit
from replay.batch import Batch, Position, record_hash
from replay.errors import NotSealedError, StoreError
from replay.reading import ConversationReader
from replay.sealing import KEY_FILE
from replay.sharing import Packed, TakenIn
from replay.store import Store
from schemas.keys import DestroyedKey
from schemas.log import LogEvent
from schemas.wire import canonical_bytes, decode_utterance
from tests.erasure.sites import CANARY, found_in, told

AT = datetime(2026, 3, 1, tzinfo=UTC)
COUNT = 14


def folded(conversation: Conversation, said: dict[str, object]) -> LogEvent:
    """The event that an utterance becomes, once it is folded."""
    event = interpret(conversation, decode_utterance(orjson.dumps(said)))
    assert not isinstance(event, tuple)
    assert not isinstance(advance(conversation, event), Refused)
    return event


def test_an_erasure_leaves_the_same_to_every_reader() -> None:
    """Who folded the conversation before, and who could not, come to the same state and digest."""
    before = Conversation.empty("acme", "told")
    events = [folded(before, said) for said in told("told", CANARY)[:COUNT]]
    late = Conversation.empty("acme", "told")
    erasure = erased_event("acme", "told", AT)
    for conversation in (before, late):
        assert not isinstance(advance(conversation, erasure), Refused)
    assert dump(before) == dump(late)
    assert (before.digest, before.state_digest()) == (late.digest, late.state_digest())
    assert dump(load(dump(late))) == dump(late)
    assert CANARY not in dump(before).decode()
    for event in (*events, erasure):
        assert advance(before, event) == Refused(RefusalReason.ERASED)


def test_an_erased_conversation_takes_no_utterance() -> None:
    """Whatever is said in it, also what it had before, is refused for that reason."""
    conversation = Conversation.empty("acme", "told")
    advance(conversation, erased_event("acme", "told", AT))
    for said in told("told", CANARY):
        assert interpret(conversation, decode_utterance(orjson.dumps(said))) == WAS_ERASED


def keys_for(folder: Path) -> tuple[Vault, KeyFolder]:
    """A vault that any store can be given, and where its wrapped keys are."""
    if not (folder / "keys").exists():
        add_tenant_key(folder / "keys", "*", "k1")
    kept = KeyFolder(folder / "wrapped")
    return Vault(KeyFile(folder / "keys"), kept), kept


def work(store: Store, conversation_id: str, begins: int) -> Position:
    """Fold a conversation as a worker does, each event with its place in Kafka; where that ends."""
    conversation = Conversation.empty("acme", conversation_id)
    batch, position = Batch(store.vault), Position(0, begins, "")
    for said in told(conversation_id, CANARY)[:COUNT]:
        event = interpret(conversation, decode_utterance(orjson.dumps(said)))
        assert not isinstance(event, tuple)
        derived = reduce(conversation, event)
        assert not isinstance(derived, Refused)
        assert store.vault is not None
        stored = store.vault.seal(Kind.EVENT, "acme", conversation_id, canonical_bytes(event))
        batch.add_log(conversation, event, stored)
        for place, each in enumerate(derived):
            batch.add_derived(each, place)
        batch.add_snapshot_if_due(conversation)
        position = Position(0, position.next_offset + 1, record_hash(stored))
        batch.add_place(event, position)
        batch.reach(position)
    store.write(batch)
    return position


def erase(store: Store, kept: KeyFolder, conversation_id: str, at: Position) -> Position:
    """Erase as a worker's store does when the log says so; where that is."""
    kept.destroy("acme", conversation_id)
    conversation = Conversation.empty("acme", conversation_id)
    event = erased_event("acme", conversation_id, AT)
    assert not isinstance(reduce(conversation, event), Refused)
    batch = Batch(store.vault)
    batch.add_log(conversation, event, canonical_bytes(event))
    position = Position(0, at.next_offset + 1, record_hash(canonical_bytes(event)))
    batch.add_place(event, position)
    batch.drop("acme", conversation_id, position.next_offset)
    batch.reach(position)
    store.write(batch)
    return position


def shared(store: Store, upto: Position) -> list[Packed]:
    """What a store shares."""
    return store.packed(upto, 0, ("", ""))


def test_what_workers_share_is_sealed(tmp_path: Path) -> None:
    """Checkpoints hold ciphertext alone; who has the keys goes on from them with the same state."""
    vault, _ = keys_for(tmp_path)
    with (
        Store(tmp_path / "one.duckdb", vault=vault) as one,
        Store(tmp_path / "other.duckdb", vault=vault) as other,
    ):
        upto = work(one, "told", 0)
        (packed,) = shared(one, upto)
        assert is_sealed(packed.payload)
        other.take_in(upto, [TakenIn(upto, packed)])
        states = [store.conversation("acme", "told") for store in (one, other)]
        assert states[0] is not None
        assert states[1] is not None
        assert dump(states[0]) == dump(states[1])
        assert states[0].state_digest() != packed.state_digest
    assert found_in(CANARY, tmp_path) == []


def test_a_moved_checkpoint_is_refused(tmp_path: Path) -> None:
    """What was shared of one conversation is not taken in as another, nor by who has no keys."""
    vault, _ = keys_for(tmp_path)
    with (
        Store(tmp_path / "one.duckdb", vault=vault) as one,
        Store(tmp_path / "other.duckdb", vault=vault) as other,
        Store(tmp_path / "plain.duckdb") as plain,
    ):
        work(one, "told", 0)
        upto = work(one, "near", COUNT)
        near, packed = shared(one, upto)
        moved = packed._replace(conversation_id="near")
        with pytest.raises(StoreError, match="acme/near"):
            other.take_in(upto, [TakenIn(upto, moved)])
        with pytest.raises(StoreError, match="acme/near: what was shared of it is sealed"):
            plain.take_in(upto, [TakenIn(upto, near)])
        assert other.conversations() == []


def test_an_erased_conversation_leaves_stores_and_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store keeps that it was erased and nothing else, and shares that; its neighbour stays."""
    vault, kept = keys_for(tmp_path)
    path = tmp_path / "one.duckdb"
    with (
        Store(path, vault=vault) as one,
        Store(tmp_path / "other.duckdb", vault=vault) as other,
    ):
        work(one, "told", 0)
        upto = work(one, "near", COUNT)
        before = shared(one, upto)
        kept.destroy("acme", "told")
        assert [each.conversation_id for each in shared(one, upto)] == ["near"]
        upto = erase(one, kept, "told", upto)
        after = shared(one, upto)
        assert [(each.conversation_id, each.sequence) for each in after] == [
            ("near", COUNT),
            ("told", 1),
        ]
        other.take_in(upto, [TakenIn(upto, each) for each in before])
        assert other.conversation("acme", "told") is None
        other.take_in(upto, [TakenIn(upto, each) for each in after])
        found = other.conversation("acme", "told")
        assert found is not None
        assert found.is_erased
        assert other.conversation("acme", "near") is not None
        assert one.rows("SELECT count(*) FROM places WHERE conversation_id = 'told'") == [(1,)]
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "keys"))
    monkeypatch.setenv("STANDFAST_WRAPPED_KEYS", str(tmp_path / "wrapped"))
    report = audit(path, jobs=1)
    assert report.divergences == []
    assert (report.conversations, report.events) == (2, COUNT + 1)


def test_a_store_is_sealed_from_its_first_row(tmp_path: Path) -> None:
    """One that was begun in the clear is not written sealed, nor the other way round."""
    vault, _ = keys_for(tmp_path)
    Store(tmp_path / "plain.duckdb").close()
    Store(tmp_path / "sealed.duckdb", vault=vault).close()
    with pytest.raises(NotSealedError):
        Store(tmp_path / "plain.duckdb", vault=vault)
    with pytest.raises(StoreError, match="is sealed"):
        Store(tmp_path / "sealed.duckdb")


def test_a_destroyed_key_stays_destroyed(tmp_path: Path) -> None:
    """Whatever the topic says after a destroyed mark, no key of that conversation counts again."""
    vault, kept = keys_for(tmp_path)
    held = HeldKeys()
    ours = Vault(KeyFile(tmp_path / "keys"), held)
    key = vault.new_key("acme", "told")
    with pytest.raises(KeysAwayError):
        ours.data_key("acme", "told")
    held.take(key)
    sealing = ours.data_key("acme", "told").key_id
    second = vault.new_key("acme", "told")
    held.take(second)
    assert [each.key_id for each in held.find("acme/told")] == [key.key_id, second.key_id]
    assert ours.data_key("acme", "told").key_id == sealing == bytes.fromhex(key.key_id)
    held.take(DestroyedKey(tenant_id="acme", conversation_id="told"))
    held.take(key)
    assert ours.is_destroyed("acme", "told")
    assert not held.has("acme/told")
    assert list(kept.every()) == []


def test_a_key_that_is_destroyed_while_it_is_read_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes on in that moment is an erased conversation, not a store to be set aside."""
    vault, kept = keys_for(tmp_path)
    with Store(tmp_path / "store.duckdb", vault=vault) as store:
        work(store, "told", 0)
        check = ConversationReader._check_against_log

        def erased_meanwhile(self: ConversationReader, conversation: Conversation) -> None:
            kept.destroy("acme", "told")
            check(self, conversation)

        monkeypatch.setattr(ConversationReader, "_check_against_log", erased_meanwhile)
        assert store.conversation("acme", "told") is None
