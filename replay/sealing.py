"""What a sealed store keeps in the clear and what it seals, and how its rows are read.

Ids, turns, times, kinds and outcomes stay in the clear, so that they can be asked for. What was
said, the states it led to and the digests of both are sealed: a digest would tell a guess from the
truth for ever. Sealing happens where rows are written; reading happens through views with the names
of the tables, so that queries are the same for both kinds of store.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
import orjson

from processor.vault.errors import (
    KeyDestroyedError,
    KeyFileError,
    KeysAwayError,
    SealedBytesError,
)
from processor.vault.key_folder import KeyFolder, folder_of
from processor.vault.sealed import Kind, as_text, from_text, is_sealed
from processor.vault.tenant_keys import KeyFile
from processor.vault.vault import Vault
from replay.bucket_path import BucketPath
from replay.errors import KeysNotThereError, StoreError

Answer = TypeVar("Answer")

KEY_FILE = "STANDFAST_KEY_FILE"
"""The environment's name of the key file; commands have an option for it."""
WRAPPED_KEYS = "STANDFAST_WRAPPED_KEYS"
"""The folder of the wrapped data keys, where it does not lie beside the store."""
ERASED_TYPE: Final = "standfast.conversation_erased.v1"
_CLEAR = ("candidate_id", "grade", "outcome", "record", "severity", "standing", "withdrawn")
"""Fields of derived events that stay in the clear beside the sealed whole: ids and kinds."""
_SEALED = '{"sealed":"'
_NO_HASH = "0" * 64


def vault_for(store: Path) -> Vault | None:
    """What opens a store with the key file of the environment; None without one."""
    if not os.environ.get(KEY_FILE):
        return None
    return Vault(tenant_keys(), keys_of(store))


def tenant_keys() -> KeyFile:
    """The key file of the environment, which must name one."""
    return KeyFile(Path(os.environ[KEY_FILE]))


def keys_of(store: Path) -> KeyFolder:
    """Where the wrapped data keys of a store are."""
    elsewhere = os.environ.get(WRAPPED_KEYS)
    if isinstance(store, BucketPath) and not elsewhere:
        raise KeysNotThereError(f"{store}: nothing secret lies beside it; set {WRAPPED_KEYS}")
    return KeyFolder(Path(elsewhere) if elsewhere else folder_of(store))


def required(vault: Vault | None, path: Path) -> Vault:
    """The vault of a store that is sealed. Raises KeysNotThereError where no key file is named."""
    if vault is None:
        raise KeysNotThereError(f"{path}: is sealed; name its key file: --key-file, or {KEY_FILE}")
    return vault


# -- writing --------------------------------------------------------------------------------------


def seal_text(vault: Vault, ids: tuple[str, str], plain: str) -> str:
    """A digest, sealed, as text."""
    return as_text(vault.seal(Kind.DIGEST, *ids, plain.encode()))


def seal_derived(vault: Vault, ids: tuple[str, str], data: bytes) -> str:
    """A derived event as JSON: the sealed whole, and what may be asked for in the clear."""
    sealed = base64.b64encode(vault.seal(Kind.DERIVED, *ids, data)).decode()
    said = orjson.loads(data)
    clear = {name: said[name] for name in _CLEAR if said.get(name) is not None}
    return orjson.dumps({"sealed": sealed, **clear}).decode()


# -- reading --------------------------------------------------------------------------------------


def read_whole(vault: Vault | None, read: Callable[[], Answer]) -> Answer:
    """What is read of a store, once more if it seems damaged: an erasure in the midst looks so.

    A key that is destroyed takes rows away; what is damaged fails again. Raises StoreError.
    """
    try:
        return read()
    except StoreError:
        if vault is None:
            raise
        return read()


def _opened(vault: Vault, kind: str, tenant: str, conversation: str, stored: bytes) -> bytes | None:
    """What was sealed; bytes that open nothing stay as they are, and nothing believes them."""
    stored = bytes(stored)
    if not is_sealed(stored):
        return stored
    try:
        return vault.open(Kind(kind), tenant, conversation, stored)
    except KeyFileError as unfit:
        raise KeysAwayError(str(unfit)) from unfit  # DuckDB tells the class by its name
    except SealedBytesError:
        return stored
    except KeyDestroyedError:
        return None


def _add_functions(connection: duckdb.DuckDBPyConnection, vault: Vault) -> None:
    def blob(kind: str, tenant: str, conversation: str, stored: bytes | None) -> bytes | None:
        return None if stored is None else _opened(vault, kind, tenant, conversation, stored)

    def hash_(kind: str, tenant: str, conversation: str, stored: bytes, told: str) -> str:
        """The hash of what was sealed, where the sealed bytes have the hash stored with them."""
        stored = bytes(stored)
        if not is_sealed(stored) or hashlib.sha256(stored).hexdigest() != told:
            return told
        opened = _opened(vault, kind, tenant, conversation, stored)
        is_open = opened is not None and opened != stored
        return hashlib.sha256(opened or b"").hexdigest() if is_open else _NO_HASH

    def text(tenant: str, conversation: str, stored: str) -> str | None:
        sealed = from_text(stored)
        if sealed is None:
            return stored
        opened = _opened(vault, Kind.DIGEST, tenant, conversation, sealed)
        return None if opened is None else opened.decode(errors="replace")

    def derived(tenant: str, conversation: str, stored: str) -> str | None:
        return _opened_derived(vault, tenant, conversation, stored)

    string, blob_type, truth = "VARCHAR", "BLOB", "BOOLEAN"
    ids = [string, string]
    for name, function, takes, gives in (
        ("standfast_open", blob, [string, *ids, blob_type], blob_type),
        ("standfast_open_hash", hash_, [string, *ids, blob_type, string], string),
        ("standfast_open_text", text, [*ids, string], string),
        ("standfast_open_derived", derived, [*ids, string], string),
        ("standfast_is_erased", vault.is_destroyed, ids, truth),
    ):
        options: dict[str, Any] = {"parameters": takes, "return_type": gives}
        options["null_handling"] = "special"  # else DuckDB takes no null for an answer
        connection.create_function(name, function, **options)


def _opened_derived(vault: Vault, tenant: str, conversation: str, stored: str) -> str | None:
    if not stored.startswith(_SEALED):
        return stored
    try:
        sealed = base64.b64decode(orjson.loads(stored)["sealed"], validate=True)
    except (ValueError, TypeError, KeyError):
        return stored
    opened = _opened(vault, Kind.DERIVED, tenant, conversation, sealed)
    if opened == sealed:
        return stored
    return None if opened is None else opened.decode()


def add_views(
    connection: duckdb.DuckDBPyConnection,
    vault: Vault,
    stored: str,
    *,
    temporary: bool,
    is_archive: bool,
) -> None:
    """Let the names of the tables stand for their rows as they were before they were sealed.

    `stored` is what stands before the names of the tables themselves. Nothing opened may reach a
    disk, so DuckDB gets no folder for temporary files.
    """
    connection.execute("SET temp_directory = ''")
    if not connection.execute(
        "SELECT 1 FROM duckdb_functions() WHERE function_name = 'standfast_open' LIMIT 1"
    ).fetchall():
        _add_functions(connection, vault)
    views = dict(_VIEWS)
    if is_archive:
        views |= _ARCHIVE_VIEWS
    create = "CREATE OR REPLACE TEMP VIEW" if temporary else "CREATE OR REPLACE VIEW"
    for name, query in views.items():
        connection.execute(f"{create} {name} AS {query.replace('STORED.', stored)}")


def opened_messages(connection: duckdb.DuckDBPyConnection) -> str:
    """The name of the messages of an archive with their values as they were sent."""
    return "messages" if stored_log(connection) is None else "opened_messages"


def stored_log(connection: duckdb.DuckDBPyConnection) -> str | None:
    """The name of the log as it is stored, in a connection that shows it opened; else None."""
    ((database, schema),) = connection.execute(
        "SELECT (SELECT count(*) FROM duckdb_databases() WHERE database_name = 'stored'), "
        "(SELECT count(*) FROM duckdb_schemas() WHERE schema_name = 'stored')"
    ).fetchall()
    if database:
        return "stored.main.log"
    return "stored.log" if schema else None


_IDS = "tenant_id, conversation_id"
_NOT_ERASED = f"NOT standfast_is_erased({_IDS})"
_VIEWS = {
    "log": f"""
SELECT {_IDS}, sequence, turn, type, utterance_id, speaker, said_at, rules_version,
       standfast_open_text({_IDS}, digest) AS digest,
       standfast_open_text({_IDS}, state_digest) AS state_digest,
       standfast_open_hash('event', {_IDS}, event, record_hash) AS record_hash,
       standfast_open('event', {_IDS}, event) AS event
FROM STORED.log WHERE type = '{ERASED_TYPE}' OR {_NOT_ERASED}""",
    "derived": f"""
SELECT {_IDS}, sequence, place, turn, type, event_id,
       CAST(standfast_open_derived({_IDS}, data) AS JSON) AS data
FROM STORED.derived WHERE {_NOT_ERASED}""",
    "snapshots": f"""
SELECT {_IDS}, sequence, turn, format,
       standfast_open_text({_IDS}, state_digest) AS state_digest,
       CASE WHEN size = octet_length(conversation)
            THEN octet_length(standfast_open('snapshot', {_IDS}, conversation))
            ELSE size END AS size,
       standfast_open_hash('snapshot', {_IDS}, conversation, bytes_hash) AS bytes_hash,
       standfast_open('snapshot', {_IDS}, conversation) AS conversation
FROM STORED.snapshots WHERE {_NOT_ERASED}""",
}
_ARCHIVE_VIEWS = {
    "opened_messages": f"""
SELECT topic, partition, "offset", timestamp_ms, timestamp, {_IDS}, key, headers,
       CASE WHEN value IS NULL OR tenant_id IS NULL THEN value
            WHEN topic = 'operations' THEN standfast_open('event', {_IDS}, value)
            ELSE standfast_open('message', {_IDS}, value) END AS value,
       sha256(value) AS stored_hash, hash
FROM STORED.messages""",
}
