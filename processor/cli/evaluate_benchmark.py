"""`standfast evaluate NAME` for every benchmark that is items under arms: one command, many names.

The names are commands of their own, so that each says in its help what data it reads. A client of
models takes longer to load than most of them take, so it is loaded when one is wanted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, final

import click
from pydantic import ValidationError

from processor.app.interpreter_settings import InterpreterKind
from processor.app.settings import interpreter_settings
from processor.cli.errors import BadInputError, writing_to
from processor.cli.output import Progress, write_json
from processor.cli.prices import Prices, price_option, total
from processor.interpreter.port import EndpointUnavailable
from processor.interpreter.request import Model
from replay.evaluate.adapters import AdapterError
from replay.evaluate.asking import QaModel
from replay.evaluate.benchmark import Benchmark, BenchmarkError, Item, Options, Workload
from replay.evaluate.extra import ExtraMissing
from replay.evaluate.measurements import Measurement, Measurements, Subject
from replay.evaluate.plots import draw
from replay.evaluate.remembered import RememberingModel, Spent, open_answers
from replay.evaluate.report import report, results, tables
from replay.evaluate.runner import ask_all, data_digest, measure_all
from replay.evaluate.suites import BENCHMARKS
from replay.interpretations import Usage
from schemas.wire import canonical_bytes

RESULTS_NAME = "results.json"
DETERMINISTIC, OPENAI = "deterministic", "openai"


@final
class _Asked(NamedTuple):
    """The options of one call."""

    data: Path | None
    arms: tuple[str, ...]
    reader: str
    limit: int | None
    seed: int
    out: Path | None
    prices: Prices


def _arms(context: click.Context, parameter: click.Parameter, written: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in written.split(",") if name.strip())


def command_for(benchmark: Benchmark) -> click.Command:
    """The command of one benchmark."""
    needs = benchmark.needs_data or benchmark.takes_data or "Not needed: the items are our own."

    @click.command(benchmark.name, help=f"{benchmark.about}\n\nArms: {_listed(benchmark)}.")
    @click.option("--data", type=click.Path(exists=True, path_type=Path), help=needs)
    @click.option("--arms", default="", callback=_arms, help="Some of the arms, with commas.")
    @click.option(
        "--reader",
        type=click.Choice([DETERMINISTIC, OPENAI]),
        default=DETERMINISTIC,
        show_default=True,
        help="openai: a model answers, told by the environment as for a run.",
    )
    @click.option("--limit", type=click.IntRange(1), help="The first N items alone.")
    @click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
    @click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        help=f"Write every item to DIR/{RESULTS_NAME}, the tables to DIR/{benchmark.name}.md, and "
        "plots; what was measured there before is not done again.",
    )
    @price_option
    @click.option("--json", "as_json", is_flag=True, help="Print all results as JSON.")
    def command(as_json: bool, **options: object) -> int:
        asked = _Asked(**options)  # type: ignore[arg-type] # click has checked them
        try:
            with writing_to(asked.out):
                return _evaluate(benchmark, asked, as_json)
        except (AdapterError, BenchmarkError, ExtraMissing) as unusable:
            raise BadInputError(str(unusable)) from unusable
        except EndpointUnavailable as unavailable:
            raise BadInputError(f"the endpoint cannot be used: {unavailable}") from unavailable

    return command


def _listed(benchmark: Benchmark) -> str:
    arms = ", ".join(benchmark.arms)
    arms += f"; if they are named {', '.join(benchmark.extra_arms)}" * bool(benchmark.extra_arms)
    return arms + f"; with a model {', '.join(benchmark.model_arms)}" * bool(benchmark.model_arms)


def _evaluate(benchmark: Benchmark, asked: _Asked, as_json: bool) -> int:
    arms = benchmark.arms_for(asked.reader == OPENAI, asked.arms)
    if benchmark.needs_data is not None and asked.data is None:
        raise BenchmarkError(f"--data is missing: {benchmark.needs_data}")
    workload = _loaded(benchmark, Options(asked.data, asked.seed))
    items = list(workload.items)[: asked.limit]
    progress = Progress(shown=True, noun="measured", every=20)
    beside: list[str] = []
    try:
        if asked.reader == OPENAI:
            subject, measurements, spent = asyncio.run(
                _with_model(benchmark, asked, workload, items, arms, progress.step)
            )
            beside.append(_spent_line(subject, spent, asked.prices))
        else:
            subject = _subject(benchmark, asked)
            kept = Measurements(asked.out, subject)
            measurements = measure_all(workload, items, arms, kept, progress.step)
    finally:
        progress.close()
    made = report(benchmark, workload, subject, measurements, beside)
    shown = tables(made)
    if asked.out is not None:
        (asked.out / RESULTS_NAME).write_bytes(canonical_bytes(results(made)) + b"\n")
        (asked.out / f"{benchmark.name}.md").write_text(shown, encoding="utf-8")
        draw(made, asked.out)
    if as_json:
        write_json(results(made))
    else:
        click.echo(shown, nl=False)
    return 0


def _loaded(benchmark: Benchmark, options: Options) -> Workload:
    """The items. Raises BenchmarkError for data that has the format and cannot be told."""
    try:
        workload = benchmark.load(options)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        problem = f"{field}: {first['msg']}, not {str(first['input'])[:80]!r}"
        raise BenchmarkError(f"{options.data}: {problem}") from invalid
    if not workload.items:
        raise BenchmarkError(f"{options.data}: there is nothing in it to measure")
    name, count = Counter(item.id for item in workload.items).most_common(1)[0]
    if count > 1:
        raise BenchmarkError(f"{options.data}: two items are called {name!r}")
    return workload


async def _with_model(
    benchmark: Benchmark,
    asked: _Asked,
    workload: Workload,
    items: Sequence[Item],
    arms: Sequence[str],
    step: Callable[[], None],
) -> tuple[Subject, list[Measurement], Spent]:
    from processor.app.interpreters import open_interpreter
    from processor.cli.reading import try_out

    settings = interpreter_settings({"kind": InterpreterKind.OPENAI})
    async with AsyncExitStack() as stack:
        folder = asked.out or Path(stack.enter_context(TemporaryDirectory()))
        cassette = stack.enter_context(open_answers(folder))
        remembering: list[RememberingModel] = []

        def through(model: Model) -> Model:
            remembering.append(RememberingModel(model, folder, cassette))
            return remembering[0]

        opened = await stack.enter_async_context(open_interpreter(settings, through))
        assert opened is not None, "openai is a model"
        await try_out(opened, settings)
        shape = await opened.model.shape()
        subject = _subject(benchmark, asked) | {"model": shape.model, **shape.written()}
        kept = Measurements(asked.out, subject)
        model = QaModel(opened.model)
        measurements = await ask_all(workload, items, arms, kept, step, model, opened.interpreter)
    return subject, measurements, remembering[0].spent


def _spent_line(subject: Subject, spent: Spent, prices: Prices) -> str:
    """What all answers took, readings included, those of earlier runs into the same folder too."""
    row = Usage("", "", "openai", subject["model"] or "", 0, *spent)
    cost = total([row], prices)["cost"]
    priced = "not known without --price" if cost is None else cost
    return (
        f"{spent.calls:,} calls: {spent.tokens_in:,} tokens in, {spent.tokens_out:,} out, "
        f"{spent.milliseconds / 1_000:,.1f} s; cost {priced}"
    )


def _subject(benchmark: Benchmark, asked: _Asked) -> Subject:
    return {
        "benchmark": benchmark.name,
        "data": data_digest(asked.data),
        "reader": asked.reader,
        "seed": str(asked.seed),
    }


COMMANDS = tuple(map(command_for, BENCHMARKS))
