"""`standfast run`: the whole pipeline in one process, no broker."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from processor.app.dead_letters import DeadLetter, DeadLetterFile
from processor.app.one_process import OneProcess, Processed, Repeated
from processor.cli.errors import BadInputError
from processor.cli.output import Progress, event_line, flush, write_line
from processor.cli.story import Story
from processor.engine.rules_version import CURRENT_RULES, KNOWN_RULES
from replay.store import Store

STORE_NAME = "standfast.duckdb"
DEAD_LETTERS_NAME = "dead-letters.jsonl"


@click.command()
@click.argument("input_path", metavar="INPUT")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Keep everything in DIR/{STORE_NAME}; run again on the same DIR to continue.",
)
@click.option(
    "--interpreter",
    type=click.Choice(["native"]),
    default="native",
    show_default=True,
    help="native: the utterances bring their operations.",
)
@click.option(
    "--rules",
    type=click.Choice([str(version) for version in KNOWN_RULES]),
    default=str(CURRENT_RULES),
    show_default=True,
    help="Version of the rules to append under.",
)
@click.option(
    "--fail-ungrounded",
    is_flag=True,
    help="Exit with status 1 if a claim of a candidate was ungrounded.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each derived event as one JSON line.")
def run(
    input_path: str,
    out: Path | None,
    interpreter: str,
    rules: str,
    fail_ungrounded: bool,
    as_json: bool,
) -> int:
    """Interpret and reduce every utterance of INPUT, a JSON Lines file or - for standard input."""
    del interpreter  # native is the only one a run without a model can have
    source = "standard input" if input_path == "-" else input_path
    with _directory(out) as folder, _open(input_path) as stream:
        kept = folder / DEAD_LETTERS_NAME
        if kept.exists() and input_path != "-" and kept.samefile(input_path):
            raise BadInputError(f"{input_path}: the dead letters of this very --out cannot be read")
        letters = DeadLetterFile(kept)
        story = Story(kept_in=out, silent=as_json)
        progress = Progress(shown=as_json)
        with Store(folder / STORE_NAME) as store:
            process = OneProcess(store, rules_version=int(rules))
            for result in process.run(stream):
                match result:
                    case DeadLetter():
                        letters.write(source, result)
                    case Processed() if as_json:
                        for event in result.derived:
                            write_line(event_line(event))
                        if input_path == "-":
                            flush()  # somebody may be waiting at the other end of the pipe
                    case Processed() | Repeated():
                        pass
                story.tell(result)
                progress.step()
        letters.close()
    progress.close()
    story.close()
    if story.first_bad is not None:
        _complain(source, story, out)
        return 2
    return 1 if fail_ungrounded and story.ungrounded_claims else 0


def _complain(source: str, story: Story, out: Path | None) -> None:
    """One line on stderr: file, line and field of the first bad line, and how many there were."""
    first = story.first_bad
    assert first is not None
    more = f" (and {story.bad_lines - 1} more bad lines)" if story.bad_lines > 1 else ""
    kept = f"; kept in {out / DEAD_LETTERS_NAME}" if out is not None else ""
    click.echo(
        f"standfast: {source}:{first.line.number}: {first.reason}{more}{kept}".replace("\n", " "),
        err=True,
    )


@contextmanager
def _directory(out: Path | None) -> Iterator[Path]:
    """Where the store goes: the given folder, or one that is removed at the end."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="standfast-") as folder:
            yield Path(folder)
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"{out}: {error.strerror}") from error
    yield out


@contextmanager
def _open(input_path: str) -> Iterator[BinaryIO]:
    if input_path == "-":
        yield sys.stdin.buffer
        return
    path = Path(input_path)
    try:
        path.open("rb").close()
    except OSError as error:
        raise BadInputError(f"{input_path}: {error.strerror}") from error
    with path.open("rb") as stream:
        yield stream
