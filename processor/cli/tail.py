"""`standfast tail`: what comes by on a topic."""

from __future__ import annotations

import base64
import re
from contextlib import aclosing
from typing import Any

import click
import orjson

from processor.app.settings import kafka_settings
from processor.app.tail import Message, Selection
from processor.app.tail import tail as read_topic
from processor.cli.errors import BadInputError
from processor.cli.kafka import AskedToStop, bootstrap_option, run_async
from processor.cli.output import flush, json_option, printable, write_line
from schemas.ids import NAME_PATTERN, TENANT_PATTERN
from schemas.topics import Payload, topic_at
from schemas.wire import WireError, canonical_bytes, decode_json


@click.command()
@click.argument("topic")
@bootstrap_option
@click.option("--from-beginning", is_flag=True, help="Start with the oldest message there is.")
@click.option("--max", "count_max", type=click.IntRange(min=1), help="End after so many messages.")
@click.option("--tenant", "tenant_id", metavar="T", help="Only messages of this tenant.")
@click.option(
    "--conversation", "conversation_id", metavar="C", help="Only messages of this conversation."
)
@json_option
def tail(
    topic: str,
    bootstrap: str | None,
    from_beginning: bool,
    count_max: int | None,
    tenant_id: str | None,
    conversation_id: str | None,
    as_json: bool,
) -> int:
    """Print the messages of TOPIC as they come, one per line, until Ctrl-C."""
    refuse_bad_id("--tenant", tenant_id, TENANT_PATTERN)
    refuse_bad_id("--conversation", conversation_id, NAME_PATTERN)
    settings = kafka_settings(bootstrap)
    selection = Selection(from_beginning, tenant_id, conversation_id)
    form = _json_line if as_json else _text_line

    async def work(stop: AskedToStop) -> None:
        shown = 0
        async with aclosing(read_topic(settings, topic, selection, stop)) as messages:
            async for message in messages:
                write_line(form(message))
                flush()
                shown += 1
                if shown == count_max:
                    return

    run_async(work)
    return 0


def _json_line(message: Message) -> bytes:
    """`{"type": ..., "data": {...}}`, as `run --json` prints it; other bytes come as they are."""
    event = _event(message)
    if event is None:
        return canonical_bytes({"type": None, "data": _original(message)})
    event_type, data = event
    return orjson.dumps({"type": event_type, "data": orjson.Fragment(canonical_bytes(data))})


def _text_line(message: Message) -> bytes:
    """Partition, offset, key, type, and the value; for a person."""
    event = _event(message)
    if event is None:
        event_type, shown = "-", canonical_bytes(_original(message))
    else:
        event_type, shown = event[0], canonical_bytes(event[1])
    key = (message.key or b"-").decode(errors="replace")
    line = f"{message.partition}:{message.offset} {key} {event_type} {shown.decode()}"
    return printable(line).encode()


def _event(message: Message) -> tuple[str, Any] | None:
    """Type and content of an event; None for anything else, such as a dead letter."""
    topic = topic_at(message.topic)
    if topic is not None and topic.payload is not Payload.EVENT:
        return None
    claimed = dict(message.headers).get("ce_type")
    event_type = None if claimed is None else claimed.decode(errors="replace")
    if event_type is None and topic is not None and len(topic.carries) == 1:
        (event_type,) = topic.carries  # a producer without headers
    if event_type is None or message.value is None:
        return None
    try:
        return event_type, decode_json(message.value)
    except WireError:
        return None


def _original(message: Message) -> dict[str, object]:
    """A message that is no event: its place, its headers, and its bytes as text if they are."""
    said: dict[str, object] = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "key": None if message.key is None else message.key.decode(errors="replace"),
        "headers": {
            name: (value or b"").decode(errors="replace") for name, value in message.headers
        },
        "original": None,
    }
    if message.value is not None:
        try:
            said["original"] = message.value.decode()
        except UnicodeDecodeError:
            del said["original"]
            said["original_base64"] = base64.b64encode(message.value).decode()
    return said


def refuse_bad_id(option: str, given: str | None, pattern: str) -> None:
    """Raise BadInputError if something was given that is no id."""
    if given is not None and not re.fullmatch(pattern, given):
        raise BadInputError(f"{option}: {given!r} is no id")
