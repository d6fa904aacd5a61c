"""`standfast evaluate operations`: does an interpreter find the operations that were made?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import click

from processor.app.interpreter_settings import InterpreterKind, InterpreterSettings
from processor.app.interpreters import open_interpreter
from processor.app.settings import interpreter_settings
from processor.cli.errors import BadInputError
from processor.cli.output import Progress, write_json
from processor.cli.reading import try_out
from processor.interpreter.port import EndpointUnavailable, Interpreter
from processor.interpreter.prompts import Condition
from processor.interpreter.recorded import Unrecorded
from replay.evaluate.operations import SCENARIOS, GoldInterpreter, LabelledTurn, label_scenario
from replay.evaluate.operations_report import Run, results, table
from schemas.wire import canonical_bytes

RESULTS_NAME = "results.json"
TABLE_NAME = "operations.md"


def _conditions(
    context: click.Context, parameter: click.Parameter, written: str
) -> tuple[Condition, ...]:
    try:
        return tuple(dict.fromkeys(Condition(name.strip()) for name in written.split(",")))
    except ValueError:
        known = ", ".join(Condition)
        raise click.BadParameter(f"{written!r}; there are {known}") from None


@click.command()
@click.option(
    "--conditions",
    default=",".join(Condition),
    show_default=True,
    callback=_conditions,
    help="What the prompts tell, with commas between them.",
)
@click.option("--runs", type=click.IntRange(1, 1_000), default=1, show_default=True)
@click.option(
    "--interpreter",
    type=click.Choice([kind.value for kind in InterpreterKind]),
    default=InterpreterKind.NATIVE.value,
    show_default=True,
    help="native: the scenarios' own operations, which must come out as 1. openai: a model, told "
    "by the environment as for a run. recorded: what a model answered before.",
)
@click.option(
    "--cassette",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="The answers for recorded.",
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the answers of openai to a file, for recorded.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Write every item to DIR/{RESULTS_NAME} and the table to DIR/{TABLE_NAME}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all results as JSON.")
def operations(
    conditions: tuple[Condition, ...],
    runs: int,
    interpreter: str,
    cassette: Path | None,
    record: Path | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Compare the operations that an interpreter reads in our scenarios with the gold ones.

    F1 and exact match, over all turns and over those in which a standing changes.
    """
    kind = InterpreterKind(interpreter)
    given = {"kind": kind, "cassette": cassette, "record": record}
    settings = {
        condition: interpreter_settings(
            {name: value for name, value in given.items() if value is not None}
            | {"condition": condition}
        )
        for condition in conditions
    }
    done = asyncio.run(_all_runs(settings, runs))
    measured = results(interpreter, done)
    shown = table(interpreter, done)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / RESULTS_NAME).write_bytes(canonical_bytes(measured) + b"\n")
        (out / TABLE_NAME).write_text(shown, encoding="utf-8")
    if as_json:
        write_json(measured)
    else:
        click.echo(shown, nl=False)
    return 0


async def _all_runs(settings: Mapping[Condition, InterpreterSettings], runs: int) -> list[Run]:
    done: list[Run] = []
    progress = Progress(shown=True, noun="turns", every=1)
    try:
        for condition, each in settings.items():
            async with _opened(each) as interpreter:
                for number in range(1, runs + 1):
                    turns = [turn async for turn in _one_run(interpreter, progress)]
                    done.append(Run(condition, number, tuple(turns)))
    except EndpointUnavailable as unavailable:
        raise BadInputError(f"the endpoint cannot be used: {unavailable}") from unavailable
    except Unrecorded as unrecorded:
        raise BadInputError(str(unrecorded)) from unrecorded
    finally:
        progress.close()
    return done


async def _one_run(interpreter: Interpreter, progress: Progress) -> AsyncIterator[LabelledTurn]:
    for name in SCENARIOS:
        async for turn in label_scenario(interpreter, name):
            progress.step()
            yield turn


@asynccontextmanager
async def _opened(settings: InterpreterSettings) -> AsyncIterator[Interpreter]:
    """The interpreter of the settings, tried out before it is asked for the first turn."""
    async with open_interpreter(settings) as opened:
        if opened is None:
            yield GoldInterpreter()
            return
        await try_out(opened, settings)
        yield opened.interpreter
