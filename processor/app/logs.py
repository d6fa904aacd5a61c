"""Logs of a worker: one JSON object per line on standard error, libraries included.

Nothing logs the text of an utterance, an operation or a claim.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from datetime import UTC, datetime
from typing import Any, BinaryIO, final

import orjson
import structlog

QUIET = ("aiokafka", "faust", "mode", "openai", "httpx2", "httpcore2")


@final
class EventLines:
    """The lines of which there is one for each event: written as structlog would at level `info`.

    Those of one turn of the event loop are written together, at its end: on its own each costs a
    system call, and the steps of structlog as much again.
    """

    def __init__(self, name: str, output: BinaryIO = sys.stderr.buffer) -> None:
        self._name = name
        self._output = output
        self._is_wanted = structlog.get_logger(name).is_enabled_for(logging.INFO)
        self._lines: list[bytes] = []

    def write(self, event: str, **fields: Any) -> None:
        """Write a line soon, in the order of calls."""
        if not self._is_wanted:
            return
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._flush)
        line = {**fields, "event": event, "level": "info", "logger": self._name}
        line["timestamp"] = datetime.now(UTC)
        self._lines.append(_as_bytes(line) + b"\n")

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        self._output.write(b"".join(lines))
        self._output.flush()


def configure_logs(level: int = logging.INFO) -> None:
    """Send the logs of this program and, from warnings on, of its libraries to standard error."""
    shared: list[structlog.types.Processor] = [
        structlog.processors.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    # Without the standard library in between: a line for each event costs a third of it.
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(serializer=_as_bytes)],
        logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(serializer=_as_text),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _as_bytes(value: object, **_: object) -> bytes:
    return orjson.dumps(value, default=str, option=orjson.OPT_UTC_Z)


def _as_text(value: object, **_: object) -> str:
    return _as_bytes(value).decode()
