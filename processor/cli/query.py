"""Queries about any turn of a stored conversation; none of them changes anything."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec

import click
import duckdb

from processor.cli.errors import BadInputError
from processor.cli.key_file import key_file_option
from processor.cli.output import json_option, printable, write_json
from processor.cli.store_path import StorePath
from processor.engine.conversation import Conversation
from processor.engine.errors import UnknownRecordError
from processor.engine.messages import failure_message
from processor.engine.plausibility.bounds import BoundExceeded, CommonKnowledgeUndefined
from processor.engine.plausibility.formula import FormulaError
from processor.engine.plausibility.syntax import parse
from processor.engine.retraction import affected_by_ids, find_record
from processor.engine.retraction import why as support_tree
from processor.engine.verify import verify_record
from processor.render.answers import (
    affected_answer,
    context_answer,
    context_text,
    history_answer,
    verify_answer,
    why_answer,
)
from processor.render.explanation import explain_record
from processor.render.view import history_view, record_line, state_view, why_line
from replay.errors import StoreError
from replay.store import Store
from replay.store_file import first_line
from schemas.derived import Outcome
from schemas.http import BUDGET_TOKENS_MAX, ContextView

Parameters = ParamSpec("Parameters")


def on_conversation(
    query: Callable[Concatenate[Conversation, bool, Parameters], int],
) -> Callable[..., int]:
    """Give a command the options that name a conversation at a turn, and `--json`."""

    @click.option("--db", type=StorePath(), required=True, help="A store or an archive.")
    @click.option("--conversation", "conversation_id", required=True)
    @click.option("--tenant", "tenant_id", default="default", show_default=True)
    @click.option("--turn", type=click.IntRange(min=0), help="As it was after this turn.")
    @key_file_option
    @json_option
    @wraps(query)
    def command(
        db: Path,
        conversation_id: str,
        tenant_id: str,
        turn: int | None,
        as_json: bool,
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> int:
        try:
            with Store(db, read_only=True) as store:
                conversation = store.conversation_at(tenant_id, conversation_id, turn)
        except duckdb.Error as error:
            raise StoreError(f"{db}: cannot read: {first_line(error)}") from error
        if conversation is None or conversation.is_erased:
            at = "" if turn is None else f" that reached turn {turn}"
            raise BadInputError(
                f"{db}: tenant {tenant_id!r} has no conversation {conversation_id!r}{at}"
            )
        try:
            return query(conversation, as_json, *args, **kwargs)
        except UnknownRecordError as unknown:
            raise BadInputError(f"{db}: {unknown}") from unknown

    return command


WHY_LINES_MAX = 50_000
"""A person reads no more; wide maps have millions of links."""


@click.command()
@on_conversation
def state(conversation: Conversation, as_json: bool) -> int:
    """Show the dependency map: records, standings, links, open problems, digests."""
    if as_json:
        write_json(state_view(conversation))
        return 0
    shown = conversation.state
    click.echo(f"after turn {conversation.turn}, digest {conversation.digest}")
    click.echo(f"state digest {conversation.state_digest()}")
    for record in shown.records.values():
        click.echo(printable(record_line(shown, record)))
    for problem in shown.open_problems():
        click.echo(printable(f"open: {problem.id}  {problem.text}"))
    return 0


@click.command()
@click.argument("record")
@click.option("--fail-ungrounded", is_flag=True, help="Exit with status 1 if it is ungrounded.")
@click.option("--explain", is_flag=True, help="Say it in a sentence too.")
@on_conversation
def verify(
    conversation: Conversation, as_json: bool, record: str, fail_ungrounded: bool, explain: bool
) -> int:
    """Check whether RECORD is grounded: everything it rests on stands."""
    verdict = verify_record(conversation.state, record)
    sentence = explain_record(conversation.state, record) if explain else ""
    status = int(fail_ungrounded and verdict.outcome is Outcome.UNGROUNDED)
    if as_json:
        answer = verify_answer(conversation, record)
        write_json({**dict(answer), "explanation": sentence} if explain else answer)
        return status
    click.echo(f"{record} is {_outcome(verdict.outcome, verdict.grade)}")
    if explain:
        click.echo(printable(sentence))
    if verdict.support:
        click.echo(f"rests on: {', '.join(verdict.support)}")
    if verdict.disputed:
        click.echo(f"in dispute: {', '.join(verdict.disputed)}")
    for failure in verdict.failures.listed:
        click.echo(f"- {failure_message(failure)}")
    if not verdict.failures.complete:
        click.echo("- and others, further away")
    return status


@click.command()
@click.argument("records", metavar="RECORD...", nargs=-1, required=True)
@on_conversation
def affected(conversation: Conversation, as_json: bool, records: tuple[str, ...]) -> int:
    """Show what would lose support if every RECORD were withdrawn."""
    if as_json:
        write_json(affected_answer(conversation, records))
        return 0
    report = affected_by_ids(conversation.state, records)
    for name, ids in report._asdict().items():
        click.echo(f"{name}: {', '.join(ids) or '(none)'}")
    return 0


@click.command()
@click.argument("record")
@on_conversation
def why(conversation: Conversation, as_json: bool, record: str) -> int:
    """Show the support tree of RECORD down to its premises."""
    if as_json:
        write_json(why_answer(conversation, record))
        return 0
    steps = support_tree(find_record(conversation.state, record))
    for step in steps[:WHY_LINES_MAX]:
        click.echo(printable(why_line(conversation.state, step)))
    if len(steps) > WHY_LINES_MAX:
        click.echo(f"... and {len(steps) - WHY_LINES_MAX:,} more lines; --json has all of them")
    return 0


@click.command()
@click.argument("record")
@on_conversation
def history(conversation: Conversation, as_json: bool, record: str) -> int:
    """Show everything that happened to RECORD, with its causes."""
    if as_json:
        write_json(history_answer(conversation, record))
        return 0
    for entry in history_view(find_record(conversation.state, record)):
        through = f" by {entry['by']}" if entry["by"] is not None else ""
        value = f" {entry['value']}" if entry["value"] is not None else ""
        click.echo(
            printable(
                f"turn {entry['turn']}: {entry['happening']}{value} "
                f"({entry['op']}{through}, {entry['speaker']})"
            )
        )
    return 0


@click.command()
@click.option(
    "--view",
    type=click.Choice([view.value for view in ContextView]),
    default=ContextView.FULL.value,
    show_default=True,
    help="full: all that stands. active: what may be relied on, and what not any more and why.",
)
@click.option(
    "--budget",
    type=click.IntRange(1, BUDGET_TOKENS_MAX),
    help="At most so many tokens: what matters most, and a note of what was left out.",
)
@click.option("--record", "first", multiple=True, help="A record that comes before all others.")
@click.option("--withdrawn", is_flag=True, help="Include the claims that were given up.")
@on_conversation
def context(
    conversation: Conversation,
    as_json: bool,
    view: str,
    budget: int | None,
    first: tuple[str, ...],
    withdrawn: bool,
) -> int:
    """Show the state in words, as a model should read it."""
    asked = (ContextView(view), budget, withdrawn, first)
    if as_json:
        write_json(context_answer(conversation, *asked))
        return 0
    for line in context_text(conversation, *asked).splitlines():
        click.echo(printable(line))
    return 0


@click.command()
@click.argument("formula")
@on_conversation
def holds(conversation: Conversation, as_json: bool, formula: str) -> int:
    """Ask the plausibility model whether FORMULA holds, such as 'B_alice h1 & ~K_alice h1'."""
    try:
        answer = conversation.state.model.holds(parse(formula))
    except FormulaError as error:
        raise BadInputError(f"FORMULA: {error}") from error
    except (BoundExceeded, CommonKnowledgeUndefined) as undecided:
        raise BadInputError(f"FORMULA: {undecided}") from undecided
    if as_json:
        write_json({"formula": formula, "holds": answer, "turn": conversation.turn})
    else:
        click.echo("holds" if answer else "does not hold")
    return 0


def _outcome(outcome: Outcome, grade: str | None) -> str:
    return outcome if grade is None or grade == outcome else f"{outcome} ({grade})"
