"""`standfast`: the entry point and what all commands share.

Exit status: 0 done; 1 the answer is negative; 2 bad input or usage, with one line on stderr.
"""

from __future__ import annotations

import gc
import os
import sys

import click
import duckdb

from processor.cli.errors import BadInputError
from processor.cli.output import ReaderGone, flush
from processor.cli.query import affected, context, history, holds, state, verify, why
from processor.cli.run import run
from processor.engine.snapshot import SnapshotFormatError
from replay.store import StoreError
from schemas.wire import WireError

BAD_INPUT = 2
GC_THRESHOLDS = (50_000, 20, 100)
"""Conversations are large graphs that live long: collecting by default costs half of the time."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="standfast")
def standfast() -> None:
    """Check, while a conversation runs, whether what is said next still rests on what stands."""


for _command in (run, state, verify, affected, why, history, context, holds):
    standfast.add_command(_command)


def main() -> None:
    """Run the command line; every failure a user can cause is one line on stderr and status 2."""
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        status = standfast.main(standalone_mode=False)
        flush()
    except click.exceptions.NoArgsIsHelpError as usage:
        click.echo(usage.format_message())
        sys.exit(BAD_INPUT)
    except click.ClickException as usage:
        click.echo(f"standfast: {usage.format_message()}", err=True)
        sys.exit(BAD_INPUT)
    except (BadInputError, StoreError, duckdb.Error, WireError, SnapshotFormatError) as error:
        click.echo(f"standfast: {' '.join(str(error).split())}", err=True)
        sys.exit(BAD_INPUT)
    except click.Abort:
        sys.exit(130)
    except ReaderGone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what still waits
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)


if __name__ == "__main__":
    main()
