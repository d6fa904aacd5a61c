"""Logs of a worker: one JSON object per line on standard error, libraries included.

Nothing logs the text of an utterance, an operation or a claim.
"""

from __future__ import annotations

import logging
import sys

import orjson
import structlog

QUIET = ("aiokafka", "faust", "mode", "openai", "httpx2", "httpcore2")


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
    return orjson.dumps(value, default=str)


def _as_text(value: object, **_: object) -> str:
    return _as_bytes(value).decode()
