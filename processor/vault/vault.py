"""Sealing and opening what conversations say, with their data keys.

Where the wrapped data keys are is somebody else's business (`WrappedKeys`): files beside a store,
or the topic `keys` as a worker follows it. What is unwrapped is kept in memory alone, for as long
as the conversation is not erased.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Protocol, final

from processor.vault.errors import DataKeyNotThereError, KeyDestroyedError, SealedBytesError
from processor.vault.sealed import (
    DataKey,
    Kind,
    key_id_of,
    random_key_id,
    random_secret,
)
from processor.vault.tenant_keys import TenantKeys, Wrapped
from schemas.ids import conversation_key
from schemas.keys import WrappedKey

CIPHERS_MAX = 20_000
"""Held ready; each takes some 2 kB."""


class WrappedKeys(Protocol):
    """Where the wrapped data keys are; `owner` is `tenant/conversation`. Any thread may ask."""

    def find(self, owner: str) -> tuple[WrappedKey, ...]:
        """The data keys of a conversation, the one to seal with first."""

    def is_destroyed(self, owner: str) -> bool:
        """Whether its data keys were destroyed."""

    def add(self, wrapped: WrappedKey) -> None:
        """Keep a new key before anything is sealed with it. Raises KeysAwayError."""


@final
class Vault:
    """Seals and opens; any thread may ask.

    Everything raises KeysAwayError where a key cannot be had now, and KeyDestroyedError where it is
    gone for good.
    """

    def __init__(self, tenant_keys: TenantKeys, wrapped: WrappedKeys) -> None:
        self._tenant_keys = tenant_keys
        self._wrapped = wrapped
        self._ciphers: OrderedDict[tuple[str, bytes], DataKey] = OrderedDict()
        self._sealing: dict[str, bytes] = {}
        self._lock = threading.RLock()

    def seal(self, kind: Kind, tenant_id: str, conversation_id: str, plain: bytes) -> bytes:
        """The sealed bytes of something that the conversation says."""
        return self.data_key(tenant_id, conversation_id).seal(kind, plain)

    def open(self, kind: Kind, tenant_id: str, conversation_id: str, sealed: bytes) -> bytes:
        """What was sealed. Raises SealedBytesError."""
        owner = conversation_key(tenant_id, conversation_id)
        key_id = key_id_of(sealed)
        with self._lock:
            self._refuse_destroyed(owner)
            key = self._held(owner, key_id) or self._unwrapped(tenant_id, owner, key_id)
        return key.open(kind, sealed)

    def data_key(self, tenant_id: str, conversation_id: str) -> DataKey:
        """The key that the conversation seals with; a new one if it has none."""
        owner = conversation_key(tenant_id, conversation_id)
        with self._lock:
            self._refuse_destroyed(owner)
            key_id = self._sealing.get(owner)
            held = None if key_id is None else self._held(owner, key_id)
            if held is not None:
                return held
            found = self._wrapped.find(owner)
            if not found:
                new = self.new_key(tenant_id, conversation_id)
                self._wrapped.add(new)
                found = (new,)
            key_id = bytes.fromhex(found[0].key_id)
            self._sealing[owner] = key_id
            return self._held(owner, key_id) or self._unwrapped(tenant_id, owner, key_id)

    def new_key(self, tenant_id: str, conversation_id: str) -> WrappedKey:
        """A new data key, wrapped, which is nowhere kept yet."""
        key_id = random_key_id()
        owner = conversation_key(tenant_id, conversation_id)
        wrapped = self._tenant_keys.wrap(tenant_id, _context(owner, key_id), random_secret())
        return WrappedKey(
            tenant_id=tenant_id,
            conversation_id=conversation_id,
            key_id=key_id.hex(),
            tenant_key=wrapped.tenant_key,
            wrapped=wrapped.wrapped.hex(),
        )

    def rewrapped(self, key: WrappedKey) -> WrappedKey | None:
        """The same data key under the tenant's newest key; None if it is that already."""
        owner = conversation_key(key.tenant_id, key.conversation_id)
        context = _context(owner, bytes.fromhex(key.key_id))
        old = Wrapped(key.tenant_key, bytes.fromhex(key.wrapped))
        secret = self._tenant_keys.unwrap(key.tenant_id, context, old)
        new = self._tenant_keys.wrap(key.tenant_id, context, secret)
        if new == old:
            return None
        return key.model_copy(update={"tenant_key": new.tenant_key, "wrapped": new.wrapped.hex()})

    def is_destroyed(self, tenant_id: str, conversation_id: str) -> bool:
        """Whether the conversation is erased, or about to be: nothing of it can be opened."""
        return self._wrapped.is_destroyed(conversation_key(tenant_id, conversation_id))

    def _held(self, owner: str, key_id: bytes) -> DataKey | None:
        held = self._ciphers.get((owner, key_id))
        if held is not None:
            self._ciphers.move_to_end((owner, key_id))
        return held

    def _unwrapped(self, tenant_id: str, owner: str, key_id: bytes) -> DataKey:
        found = {each.key_id: each for each in self._wrapped.find(owner)}
        named = found.get(key_id.hex())
        if named is None:
            if found:  # a key is kept before anything is sealed with it
                raise SealedBytesError(f"{owner}: {key_id.hex()} is none of its data keys")
            raise DataKeyNotThereError(f"{owner}: its data key {key_id.hex()} is not there")
        wrapped = Wrapped(named.tenant_key, bytes.fromhex(named.wrapped))
        secret = self._tenant_keys.unwrap(tenant_id, _context(owner, key_id), wrapped)
        key = DataKey(owner, key_id, secret)
        self._ciphers[owner, key_id] = key
        while len(self._ciphers) > CIPHERS_MAX:
            self._ciphers.popitem(last=False)
        return key

    def _refuse_destroyed(self, owner: str) -> None:
        """Forget what is held of an erased conversation. Raises KeyDestroyedError."""
        if not self._wrapped.is_destroyed(owner):
            return
        self._sealing.pop(owner, None)
        for held in [each for each in self._ciphers if each[0] == owner]:
            del self._ciphers[held]
        raise KeyDestroyedError(f"{owner} was erased")


def _context(owner: str, key_id: bytes) -> bytes:
    return f"{owner}#{key_id.hex()}".encode()
