"""The options that say who reads text; commands that have them ask for a reader here.

A client of models takes longer to load than a run takes, so it is loaded when one is wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, final

import click

from processor.app.interpreter_settings import InterpreterKind
from processor.app.tenants import Tenants
from processor.cli.errors import BadInputError

if TYPE_CHECKING:
    from processor.cli.reading import WaitingReader

Command = TypeVar("Command", bound=Callable[..., object])


def interpreter_option(native: str, told_by: str) -> Callable[[Command], Command]:
    """`--interpreter`; `native` says what is read without a model, `told_by` how one is named."""
    return click.option(
        "--interpreter",
        type=click.Choice([kind.value for kind in InterpreterKind]),
        default=InterpreterKind.NATIVE.value,
        show_default=True,
        help=f"native: {native}. openai: {told_by}. recorded: what a model answered before is "
        "read again.",
    )


cassette_option = click.option(
    "--cassette",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="The answers for recorded: what --record wrote, or a store that a model was asked for.",
)
record_option = click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the answers of openai to a file, for recorded.",
)
tenants_option = click.option(
    "--tenants",
    "tenants_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What holds for tenants: one JSON object a line, each with a tenant (null: all others), "
    "its authority policy, the supersession of its values (off, explicit or same_key_same_source), "
    "and its memory (a class, or auto with the weights of its queries).",
)


@final
class Asked(NamedTuple):
    """Who is to read, as the options say."""

    kind: InterpreterKind
    cassette: Path | None
    record: Path | None

    def reading(
        self, rules_version: int, tenants: Tenants
    ) -> AbstractContextManager[WaitingReader | None]:
        """Who reads text, if anybody does. Raises BadInputError and SettingsError."""
        if self.kind is InterpreterKind.NATIVE:
            if self.cassette or self.record:
                raise BadInputError("--cassette and --record belong to another --interpreter")
            return nullcontext()
        from processor.cli.reading import reading

        return reading(self.kind, self.cassette, self.record, rules_version, tenants)
