"""`standfast dead-letters list|requeue`: what could not be handled, and trying it again."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from processor.app.interpret import DeadLetterClass
from processor.app.letters import Letter, LetterFilter, NoSuchLetter, letters, letters_at
from processor.app.requeue import Requeued
from processor.app.requeue import requeue as send_again
from processor.app.settings import kafka_settings
from processor.app.tail import Selection
from processor.cli.errors import BadInputError
from processor.cli.kafka import AskedToStop, bootstrap_option, run_async
from processor.cli.output import complain, flush, json_option, printable, write_json
from processor.cli.produce import CUT_SHORT
from processor.cli.tail import refuse_bad_id
from schemas.ids import NAME_PATTERN, TENANT_PATTERN

_PLACE = re.compile(r"([0-9]{1,9})/([0-9]{1,18})")
_MS_MAX = 253_402_300_799_999
_OUTCOMES = ("requeued", "repeated", "refused")
"""Repeated: the same original was sent for another letter just now."""


def _filters(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that choose letters."""
    for option in (
        click.option(
            "--class",
            "letter_class",
            type=click.Choice([each.value for each in DeadLetterClass]),
            help="Only letters of this class.",
        ),
        click.option(
            "--conversation", "conversation_id", metavar="C", help="Only of this conversation."
        ),
        click.option("--tenant", "tenant_id", metavar="T", help="Only of this tenant."),
    ):
        command = option(command)
    return command


@click.group()
def dead_letters() -> None:
    """Show what could not be handled, or send it to the utterances again."""


@dead_letters.command("list")
@bootstrap_option
@_filters
@json_option
def list_(
    bootstrap: str | None,
    tenant_id: str | None,
    conversation_id: str | None,
    letter_class: str | None,
    as_json: bool,
) -> int:
    """Print the dead letters there are: where each stands, what it is, and why."""
    wanted = _filter(tenant_id, conversation_id, letter_class)
    settings = kafka_settings(bootstrap)
    show = _show_json if as_json else _Shown()

    async def work(stop: AskedToStop) -> None:
        async with aclosing(letters(settings, wanted)) as found:
            async for letter in found:
                if stop.is_set():
                    return
                show(letter)
                flush()

    run_async(work)
    return 0


@dead_letters.command()
@bootstrap_option
@click.argument("places", nargs=-1, metavar="[PARTITION/OFFSET]...")
@_filters
@click.option("--all", "all_", is_flag=True, help="All letters that the filters leave.")
@json_option
def requeue(
    bootstrap: str | None,
    places: tuple[str, ...],
    tenant_id: str | None,
    conversation_id: str | None,
    letter_class: str | None,
    all_: bool,
    as_json: bool,
) -> int:
    """Send the originals of dead letters to the utterances again; what was missing is filled.

    Once filled, sending one again changes nothing. Status 1 says that some were refused: they would
    only come back.
    """
    filters = (tenant_id, conversation_id, letter_class)
    if bool(places) == all_ or (places and any(filters)):
        raise BadInputError("give either places as PARTITION/OFFSET, or --all and perhaps filters")
    named = [_place(place) for place in places]
    settings = kafka_settings(bootstrap)
    chosen = letters_at(settings, named) if named else letters(settings, _filter(*filters))
    counts = dict.fromkeys(_OUTCOMES, 0)

    async def work(stop: AskedToStop) -> int:
        async with aclosing(chosen), aclosing(send_again(settings, chosen)) as done:
            async for each in done:
                outcome = _outcome(each)
                counts[outcome] += 1
                _show_requeued(each, outcome, as_json)
                flush()
                if stop.by is not None:
                    complain(f"stopped by {stop.by.name}")
                    return CUT_SHORT + stop.by
        return 1 if counts["refused"] else 0

    try:
        status = run_async(work)
    except NoSuchLetter as missing:
        raise BadInputError(str(missing)) from missing
    if not as_json:
        click.echo(", ".join(f"{count:,} {outcome}" for outcome, count in counts.items()))
    return status


def _filter(
    tenant_id: str | None, conversation_id: str | None, letter_class: str | None
) -> LetterFilter:
    refuse_bad_id("--tenant", tenant_id, TENANT_PATTERN)
    refuse_bad_id("--conversation", conversation_id, NAME_PATTERN)
    selection = Selection(tenant_id=tenant_id, conversation_id=conversation_id)
    return LetterFilter(selection, letter_class)


def _place(given: str) -> tuple[int, int]:
    match = _PLACE.fullmatch(given)
    if match is None:
        raise BadInputError(f"{given!r} is no PARTITION/OFFSET")
    return int(match[1]), int(match[2])


def _at(letter: Letter) -> str | None:
    """When it was written, unless its time is none of this calendar."""
    if not 0 <= letter.timestamp_ms <= _MS_MAX:
        return None
    at = datetime.fromtimestamp(letter.timestamp_ms / 1_000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _names(letter: Letter) -> tuple[str, str]:
    """Tenant and conversation, as its key has them."""
    tenant_id, _, conversation_id = letter.key.decode(errors="replace").partition("/")
    return tenant_id, conversation_id


def _show_json(letter: Letter) -> None:
    tenant_id, conversation_id = _names(letter)
    write_json(
        {
            "partition": letter.partition,
            "offset": letter.offset,
            "at": _at(letter),
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "class": letter.letter_class,
            "reason": letter.reason,
            "attempts": letter.attempts,
            "source_topic": letter.source_topic,
            "source_partition": letter.source_partition,
            "source_offset": letter.source_offset,
            "bytes": len(letter.original),
            "truncated": letter.is_truncated,
            "sha256": letter.sha256,
        }
    )


class _Shown:
    """Two lines for each letter, for a person; whatever stands in it cannot steer the terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)

    def __call__(self, letter: Letter) -> None:
        tenant_id, conversation_id = _names(letter)
        line = Text(f"{letter.place}  ", style="bold cyan")
        line.append(printable(letter.letter_class or "no class"), style="bold red")
        line.append(printable(f"  {tenant_id or '-'}/{conversation_id or '-'}"), style="bold")
        source = f"{letter.source_topic or '?'} {_said(letter.source_partition)}/"
        details = [
            _at(letter) or "no time",
            f"from {source}{_said(letter.source_offset)}",
            f"{_said(letter.attempts)} attempts",
            f"{len(letter.original):,} bytes{' (truncated)' if letter.is_truncated else ''}",
        ]
        line.append(printable("  " + ", ".join(details)), style="dim")
        self._console.print(line)
        self._console.print(Text(f"    {printable(letter.reason or 'no reason')}"))


def _said(number: int | None) -> Any:
    return "?" if number is None else number


def _outcome(each: Requeued) -> str:
    if each.is_repeat:
        return "repeated"
    return "requeued" if each.refusal is None else "refused"


def _show_requeued(each: Requeued, outcome: str, as_json: bool) -> None:
    if as_json:
        said = {"partition": each.letter.partition, "offset": each.letter.offset}
        write_json({**said, "outcome": outcome, "reason": each.refusal})
        return
    reason = "" if each.refusal is None else f": {each.refusal}"
    click.echo(printable(f"{each.letter.place} {outcome}{reason}"))
