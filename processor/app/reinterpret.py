"""Has the utterances of a history read again, into a history of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb

from processor.app.one_process import OneProcess
from replay.errors import StoreError
from replay.opened import opened
from replay.sealing import opened_messages
from replay.store_file import first_line
from schemas.utterance import UtteranceKind
from schemas.wire import WireError, decode_utterance

_UTTERANCES = """
SELECT value FROM MESSAGES WHERE topic = 'utterances' AND value IS NOT NULL
ORDER BY partition, "offset"
"""


def archived_utterances(path: Path) -> Iterator[bytes]:
    """The utterances of an archive as they were sent, in order. Raises StoreError."""
    connection = opened(path)
    try:
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        if "messages" not in tables:
            raise StoreError(f"{path}: holds no utterances, only what was made of them; name them")
        query = _UTTERANCES.replace("MESSAGES", opened_messages(connection))
        rows = connection.execute(query)
        while row := rows.fetchone():
            yield row[0]
    except duckdb.Error as error:
        raise StoreError(f"{path}: cannot read: {first_line(error)}") from error
    finally:
        connection.close()


def reinterpret(lines: Iterable[bytes], process: OneProcess) -> None:
    """Have the words of each utterance read and appended.

    Operations that came with an utterance are not looked at, unless there is nobody who reads. A
    line that is no utterance, or comes again, is passed over.
    """
    for line in lines:
        try:
            utterance = decode_utterance(line)
        except WireError:
            continue
        if process.read is not None and utterance.kind is UtteranceKind.STATEMENT:
            utterance = utterance.model_copy(update={"operations": None})
        process.append(utterance)
        process.commit_when_due()
    process.commit()
