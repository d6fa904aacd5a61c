"""`standfast evaluate operations`: does an interpreter find the operations that were made?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, final

import click

from processor.app.interpreter_settings import InterpreterKind, InterpreterSettings
from processor.app.settings import interpreter_settings
from processor.cli.errors import BadInputError, writing_to
from processor.cli.output import Progress, write_json
from processor.cli.reader_options import cassette_option, interpreter_option, record_option
from processor.interpreter.port import EndpointUnavailable, Interpreter
from processor.interpreter.prompts import Condition
from processor.interpreter.prompts.texts import VERSION
from processor.interpreter.recorded import Unrecorded
from replay.evaluate.operations import SCENARIOS, GoldInterpreter, LabelledTurn, label_scenario
from replay.evaluate.operations_report import results, table
from replay.evaluate.operations_runs import Run, Subject, keep_run, kept_runs
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
@interpreter_option(
    native="the scenarios' own operations, which must come out as 1",
    told_by="a model, told by the environment as for a run",
)
@cassette_option
@record_option
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Write every item to DIR/{RESULTS_NAME} and the table to DIR/{TABLE_NAME}; a run that "
    "was finished there before is not done again.",
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
    subject = _subject(settings[conditions[0]])
    with writing_to(out):
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        plan = _Plan(subject, settings, range(1, runs + 1), out)
        done = asyncio.run(plan.all_runs())
        measured = results(subject, done)
        shown = table(subject, done)
        if out is not None:
            (out / RESULTS_NAME).write_bytes(canonical_bytes(measured) + b"\n")
            (out / TABLE_NAME).write_text(shown, encoding="utf-8")
    if as_json:
        write_json(measured)
    else:
        click.echo(shown, nl=False)
    return 0


def _subject(settings: InterpreterSettings) -> Subject:
    """What shapes the answers, but for the condition."""
    shaping = ("base_url", "model", "dialect", "temperature", "seed", "answer_tokens_max")
    given = {name: getattr(settings, name) for name in (*shaping, "prompt_tokens_max", "cassette")}
    return {
        "interpreter": settings.kind.value,
        "wording": VERSION,
        **{name: None if value is None else str(value) for name, value in given.items()},
    }


@final
class _Plan(NamedTuple):
    """Which runs are wanted; those that were finished before are not done again."""

    subject: Subject
    settings: Mapping[Condition, InterpreterSettings]
    numbers: Sequence[int]
    out: Path | None

    async def all_runs(self) -> list[Run]:
        """Every run, condition by condition. Raises BadInputError and StoreError."""
        before = [] if self.out is None else kept_runs(self.out, self.subject)
        kept = {(run.condition, run.run): run for run in before}
        done: list[Run] = []
        progress = Progress(shown=True, noun="turns", every=1)
        try:
            for condition, settings in self.settings.items():
                missing = [number for number in self.numbers if (condition, number) not in kept]
                if missing:
                    async for run in self._runs(condition, settings, missing, progress):
                        kept[condition, run.run] = run
                done += [kept[condition, number] for number in self.numbers]
        except EndpointUnavailable as unavailable:
            raise BadInputError(f"the endpoint cannot be used: {unavailable}") from unavailable
        except Unrecorded as unrecorded:
            raise BadInputError(str(unrecorded)) from unrecorded
        finally:
            progress.close()
        return done

    async def _runs(
        self,
        condition: Condition,
        settings: InterpreterSettings,
        numbers: Sequence[int],
        progress: Progress,
    ) -> AsyncIterator[Run]:
        async with _opened(settings) as interpreter:
            for number in numbers:
                turns = [turn async for turn in _one_run(interpreter, progress)]
                run = Run(subject=self.subject, condition=condition, run=number, items=tuple(turns))
                if self.out is not None:
                    keep_run(self.out, run)
                yield run


async def _one_run(interpreter: Interpreter, progress: Progress) -> AsyncIterator[LabelledTurn]:
    for name in SCENARIOS:
        async for turn in label_scenario(interpreter, name):
            progress.step()
            yield turn


@asynccontextmanager
async def _opened(settings: InterpreterSettings) -> AsyncIterator[Interpreter]:
    """The interpreter of the settings, tried out before it is asked for the first turn."""
    from processor.app.interpreters import open_interpreter
    from processor.cli.reading import try_out

    async with open_interpreter(settings) as opened:
        if opened is None:
            yield GoldInterpreter()
            return
        await try_out(opened, settings)
        yield opened.interpreter
