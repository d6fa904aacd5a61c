"""Has the utterances of a history read again, into a history of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import duckdb

from processor.app.interpret import interpret, needs_reading
from processor.app.live import LiveConversations
from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused
from processor.interpreter.port import Interpreted
from processor.render.reduce import reduce
from replay.errors import StoreError
from replay.opened import opened
from replay.store import Store
from replay.store_file import first_line
from schemas.utterance import Utterance, UtteranceKind
from schemas.wire import WireError, decode_utterance

Read: TypeAlias = Callable[[Conversation, Utterance], Interpreted | None]
RECORDS_MAX = 100_000
_UTTERANCES = """
SELECT value FROM messages WHERE topic = 'utterances' AND value IS NOT NULL
ORDER BY partition, "offset"
"""


def archived_utterances(path: Path) -> Iterator[bytes]:
    """The utterances of an archive as they were sent, in order. Raises StoreError."""
    connection = opened(path)
    try:
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        if "messages" not in tables:
            raise StoreError(f"{path}: holds no utterances, only what was made of them; name them")
        rows = connection.execute(_UTTERANCES)
        while row := rows.fetchone():
            yield row[0]
    except duckdb.Error as error:
        raise StoreError(f"{path}: cannot read: {first_line(error)}") from error
    finally:
        connection.close()


def reinterpret(lines: Iterable[bytes], store: Store, read: Read | None) -> int:
    """Read the words of each utterance and append what they say; how many were appended.

    Operations that came with an utterance are not looked at, unless there is nobody who reads. A
    line that is no utterance, or comes again, is passed over.
    """
    live = LiveConversations(store, RECORDS_MAX)
    appended = 0
    for line in lines:
        try:
            utterance = decode_utterance(line)
        except WireError:
            continue
        if read is not None and utterance.kind is UtteranceKind.STATEMENT:
            utterance = utterance.model_copy(update={"operations": None})
        conversation = live.get(utterance.tenant_id, utterance.conversation_id)
        reading = None
        if read is not None and needs_reading(utterance):
            reading = read(conversation, utterance)
        event = interpret(conversation, utterance, reading=reading)
        if isinstance(event, tuple):
            continue
        derived = reduce(conversation, event)
        if isinstance(derived, Refused):
            raise StoreError(f"an utterance does not fit its conversation: {derived.reason}")
        store.append(conversation, event, derived)
        live.hold(conversation)
        appended += 1
    return appended
