"""`standfast run`: the whole pipeline in one process, no broker."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, final

import click

from processor.app.dead_letters import DeadLetter, DeadLetterFile
from processor.app.interpreter_settings import InterpreterKind
from processor.app.live_input import LiveInput, buffered
from processor.app.one_process import OneProcess, Processed, Repeated
from processor.app.repeated_drafts import RepeatedDrafts
from processor.app.tenants import read_tenants
from processor.cli.errors import BadInputError
from processor.cli.input import open_input
from processor.cli.key_file import key_file_option
from processor.cli.output import Progress, ReaderGone, complain, event_line, flush, write_line
from processor.cli.reader_options import (
    Asked,
    cassette_option,
    interpreter_option,
    record_option,
    tenants_option,
)
from processor.cli.stop import ASKED_BY, Stop, Stopped
from processor.cli.story import Story
from processor.engine.rules_version import CURRENT_RULES, KNOWN_RULES
from replay.sealing import KEY_FILE
from replay.store import Store

STORE_NAME = "standfast.duckdb"
DEAD_LETTERS_NAME = "dead-letters.jsonl"
CUT_SHORT = 128
"""Plus the number of a signal: the status of a run that did not come to the end of its input."""


@click.command()
@click.argument("input_path", metavar="INPUT")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Keep everything in DIR/{STORE_NAME}; run again on the same DIR to continue.",
)
@interpreter_option(
    native="the utterances bring their operations",
    told_by="a model reads those that bring none; see OPENAI_BASE_URL, OPENAI_API_KEY, "
    "STANDFAST_INTERPRETER_MODEL",
)
@cassette_option
@record_option
@click.option(
    "--rules",
    type=click.Choice([str(version) for version in KNOWN_RULES]),
    default=str(CURRENT_RULES),
    show_default=True,
    help="Version of the rules to append under.",
)
@tenants_option
@click.option(
    "--fail-ungrounded",
    is_flag=True,
    help="Exit with status 1 if a claim of a candidate was ungrounded.",
)
@key_file_option
@click.option("--json", "as_json", is_flag=True, help="Print each derived event as one JSON line.")
def run(
    input_path: str,
    out: Path | None,
    interpreter: str,
    cassette: Path | None,
    record: Path | None,
    rules: str,
    tenants_path: Path | None,
    fail_ungrounded: bool,
    as_json: bool,
) -> int:
    """Interpret and reduce every utterance of INPUT, a JSON Lines file or - for standard input."""
    source = "standard input" if input_path == "-" else input_path
    story = Story(kept_in=out, silent=as_json)
    rules_version, tenants = int(rules), read_tenants(tenants_path)
    if record is not None and os.environ.get(KEY_FILE):
        raise BadInputError("--record: a recording would keep in the clear what --key-file seals")
    asked = Asked(InterpreterKind(interpreter), cassette, record)
    with (
        asked.reading(rules_version, tenants) as reader,
        Stop() as stop,
        _directory(out) as folder,
        open_input(input_path) as file,
    ):
        kept = folder / DEAD_LETTERS_NAME
        if input_path != "-" and kept.exists() and kept.samefile(input_path):
            raise BadInputError(f"{input_path}: the dead letters of this very --out cannot be read")
        with Store(folder / STORE_NAME) as store, DeadLetterFile(kept, store.vault) as letters:
            process = OneProcess(
                store,
                rules_version=rules_version,
                tenants=tenants,
                interruptible=stop.at_once,
                read=None if reader is None else reader.read,
            )
            stream = buffered(LiveInput(file, source, process.commit_when_due, stop.at_once))
            drafts = RepeatedDrafts(store) if fail_ungrounded else None
            work = _Work(source, as_json, story, letters, drafts, stop)
            ended_by = work.through(process, stream)
            is_ungrounded = drafts is not None and (
                story.ungrounded_claims > 0 or drafts.any_ungrounded()
            )
    if ended_by in ASKED_BY:
        kept_in = f"what was processed is kept in {out}" if out else "nothing was kept"
        complain(f"stopped by {ended_by.name}; {kept_in}")
        return CUT_SHORT + ended_by
    if story.first_bad is not None:
        complain(_first_bad_line(source, story, out))
        return 2
    if ended_by is not None and (out is not None or fail_ungrounded):
        return CUT_SHORT + ended_by
    return int(is_ungrounded)


@final
class _Work(NamedTuple):
    """Hands on what comes of each line, and ends early if it must."""

    source: str
    as_json: bool
    story: Story
    letters: DeadLetterFile
    drafts: RepeatedDrafts | None
    stop: Stop

    def through(self, process: OneProcess, stream: BinaryIO) -> signal.Signals | None:
        """Work through the stream and commit everything; the signal that ended it early, if any.

        A reader that went away counts as SIGPIPE: it has what it wanted, and the rest is left.
        """
        progress = Progress(shown=self.as_json)
        try:
            for result in process.run(stream):
                self._hand_on(result)
                progress.step()
                self.stop.check()
        except Stopped as stopped:
            ended_by = stopped.signal
        except ReaderGone:
            ended_by = signal.SIGPIPE
        else:
            with suppress(ReaderGone):
                self.story.close()
            return None
        finally:
            progress.close()
        process.commit()
        return ended_by

    def _hand_on(self, result: Processed | Repeated | DeadLetter) -> None:
        """Print what came of a line, and see that it arrives: only then it may be committed."""
        match result:
            case DeadLetter():
                self.letters.write(self.source, result)
            case Processed() if self.as_json:
                for event in result.derived:
                    write_line(event_line(event))
            case Repeated() if self.drafts is not None:
                self.drafts.add(result.utterance)
        self.story.tell(result)
        flush()


def _first_bad_line(source: str, story: Story, out: Path | None) -> str:
    """File, line and field of the first bad line, and how many there were."""
    first = story.first_bad
    assert first is not None
    more = f" (and {story.bad_lines - 1} more bad lines)" if story.bad_lines > 1 else ""
    kept = f"; kept in {out / DEAD_LETTERS_NAME}" if out is not None else ""
    return f"{source}:{first.line.number}: {first.reason}{more}{kept}"


@contextmanager
def _directory(out: Path | None) -> Iterator[Path]:
    """Where the store goes: the given folder, or one that is removed at the end."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="standfast-") as folder:
            yield Path(folder)
        return
    out.mkdir(parents=True, exist_ok=True)
    yield out
