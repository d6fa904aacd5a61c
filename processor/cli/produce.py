"""`standfast produce`: utterances from a file to the brokers."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import aclosing

import click

from processor.app.errors import BrokerError
from processor.app.line_feed import feed_lines
from processor.app.lines import Line
from processor.app.messages import UTTERANCES
from processor.app.produce import Sent
from processor.app.produce import produce as send_lines
from processor.app.settings import kafka_settings
from processor.cli.input import open_input
from processor.cli.kafka import AskedToStop, bootstrap_option, run_async
from processor.cli.output import Progress, complain, json_option, write_json

CUT_SHORT = 128
"""Plus the number of a signal: the status if the end of the input was not reached."""


@click.command()
@click.argument("input_path", metavar="FILE")
@bootstrap_option
@json_option
def produce(input_path: str, bootstrap: str | None, as_json: bool) -> int:
    """Send every utterance of FILE, a JSON Lines file or - for standard input, to its topic.

    A bad line is reported and the rest is sent; then the status is 2.
    """
    settings = kafka_settings(bootstrap)
    source = "standard input" if input_path == "-" else input_path
    result = Sent()
    progress = Progress(shown=True)

    async def work(stop: AskedToStop) -> signal.Signals | None:
        with open_input(input_path) as file:
            async with aclosing(feed_lines(file, source, stop)) as lines:
                await send_lines(settings, _counted(lines, progress), result)
        return stop.by

    try:
        ended_by = run_async(work)
    except BrokerError as failed:
        before = f" ({result.sent:,} sent before)" if result.sent else ""
        raise BrokerError(f"{failed}{before}") from failed
    finally:
        progress.close()
    if as_json:
        write_json({"topic": UTTERANCES, "sent": result.sent, "bad_lines": result.bad_lines})
    else:
        click.echo(f"{result.sent:,} utterances sent to {UTTERANCES}")
    if ended_by is not None:
        complain(f"stopped by {ended_by.name}")
        return CUT_SHORT + ended_by
    if result.first_bad is not None:
        complain(_first_bad_line(source, result))
        return 2
    return 0


async def _counted(lines: AsyncIterator[Line], progress: Progress) -> AsyncIterator[Line]:
    async for line in lines:
        progress.step()
        yield line


def _first_bad_line(source: str, result: Sent) -> str:
    """File, line and field of the first bad line, and how many there were."""
    first = result.first_bad
    assert first is not None
    more = f" (and {result.bad_lines - 1} more bad lines)" if result.bad_lines > 1 else ""
    return f"{source}:{first.line.number}: {first.problem}{more}"
