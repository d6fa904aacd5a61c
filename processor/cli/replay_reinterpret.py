"""`standfast replay reinterpret`: the same utterances, read by another interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, final

import click

from processor.app.interpreter_settings import InterpreterKind
from processor.app.one_process import OneProcess
from processor.app.reinterpret import archived_utterances
from processor.app.reinterpret import reinterpret as read_again
from processor.app.tenants import Tenants, read_tenants
from processor.cli.errors import BadInputError
from processor.cli.key_file import key_file_option
from processor.cli.output import json_option, printable, write_json
from processor.cli.prices import Prices, in_words, price_option, total
from processor.cli.reader_options import (
    Asked,
    cassette_option,
    interpreter_option,
    record_option,
    tenants_option,
)
from processor.cli.run import STORE_NAME
from processor.cli.store_path import StorePath
from processor.engine.rules_version import CURRENT_RULES
from replay.interpretations import Usage, usage_in
from replay.labels import Kinds
from replay.one_writer import one_writer
from replay.opened import opened
from replay.reinterpret import Comparison, compare_histories, history_of
from replay.sealing import vault_for
from replay.store import Store
from schemas.ids import conversation_key


@click.command()
@click.option("--db", type=StorePath(), required=True, help="The first history.")
@click.option(
    "--input",
    "input_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The utterances, one a line; by default those that the archive holds.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help=f"Where the new history goes, as DIR/{STORE_NAME}; it must be new.",
)
@interpreter_option(
    native="the operations that the utterances bring",
    told_by="a model, told by the environment as for a run, reads every statement",
)
@cassette_option
@record_option
@tenants_option
@price_option
@key_file_option
@json_option
def reinterpret(
    db: Path,
    input_path: Path | None,
    out: Path,
    interpreter: str,
    cassette: Path | None,
    record: Path | None,
    tenants_path: Path | None,
    prices: Prices,
    as_json: bool,
) -> int:
    """Read the same utterances into a new history, and compare it with the first, which stays."""
    path = out / STORE_NAME
    if path.exists():
        raise _there(path)
    opened(db).close()  # what is sealed, and cannot be compared, is not read again in the clear
    lines = archived_utterances(db) if input_path is None else _lines(input_path)
    asked = Asked(InterpreterKind(interpreter), cassette, record)
    _read(lines, path, asked, read_tenants(tenants_path))
    compared = list(_compared(db, path, prices))
    if as_json:
        told = [each.view() for each in compared]
        write_json({"left": str(db), "right": str(path), "conversations": told})
        return 0
    for each in compared:
        _tell(each)
    return 0


def _read(lines: Iterator[bytes], path: Path, asked: Asked, tenants: Tenants) -> None:
    """Make the new history, which has its name once it is whole."""
    with (
        asked.reading(CURRENT_RULES, tenants) as reader,
        one_writer(path.parent) as unfinished,
    ):
        fresh = unfinished / path.name
        with Store(fresh, vault=vault_for(path)) as store:  # its keys lie where it will
            read = None if reader is None else reader.read
            read_again(lines, OneProcess(store, tenants=tenants, read=read))
        if path.exists():
            raise _there(path)
        fresh.rename(path)


def _there(path: Path) -> BadInputError:
    return BadInputError(f"{path}: is there already; a history is not written over another")


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


@final
class _Compared(NamedTuple):
    """A conversation in both histories, and what models were asked for it in each."""

    tenant_id: str
    conversation_id: str
    found: Comparison
    usage_left: dict[str, Any]
    usage_right: dict[str, Any]

    def view(self) -> dict[str, Any]:
        """As a JSON value."""
        fields = self._asdict()
        del fields["found"]
        return fields | self.found.view()


def _compared(left: Path, right: Path, prices: Prices) -> Iterator[_Compared]:
    """The comparison of each conversation that the new history has."""
    before, after = usage_in(left), usage_in(right)
    with closing(opened(left)) as ours, closing(opened(right)) as theirs:
        keys = theirs.execute("SELECT DISTINCT tenant_id, conversation_id FROM log ORDER BY ALL")
        for key in keys.fetchall():
            found = compare_histories(history_of(ours, left, *key), history_of(theirs, right, *key))
            used = total(_of(before, key), prices), total(_of(after, key), prices)
            yield _Compared(key[0], key[1], found, *used)


def _of(rows: list[Usage], key: tuple[str, str]) -> Iterator[Usage]:
    return (row for row in rows if (row.tenant_id, row.conversation_id) == key)


def _tell(compared: _Compared) -> None:
    found = compared.found
    name = conversation_key(compared.tenant_id, compared.conversation_id)
    labels = f"{len(found.turns):,} turns, F1 {found.f1:.3f}, exact {found.exact_match:.3f}"
    maps = f"records {found.record_jaccard:.3f}, claims {found.claim_jaccard:.3f}"
    click.echo(printable(f"{name}: {labels}, {maps}"))
    for turn in found.turns:
        if not turn.same_kinds:
            click.echo(
                printable(f"  {turn.utterance_id}: {_label(turn.left)} | {_label(turn.right)}")
            )
    for verdict in found.verdicts:
        place = verdict.record or f"claim {verdict.claim_index}"
        outcomes = f"{verdict.left or 'no verdict'} -> {verdict.right or 'no verdict'}"
        click.echo(printable(f"  verdict {verdict.utterance_id}, {place}: {outcomes}"))
    click.echo(f"  left: {in_words(compared.usage_left)}")
    click.echo(f"  right: {in_words(compared.usage_right)}")


def _label(kinds: Kinds | None) -> str:
    return "not read" if kinds is None else ", ".join(kinds) or "nothing"
