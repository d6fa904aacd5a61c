"""`standfast`: the entry point and what all commands share.

Exit status: 0 done; 1 the answer is negative; 2 bad input or usage, with one line on stderr. A run
that was cut short ends with 128 and the number of the signal, as a shell would say it.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress

import click
import duckdb

from processor.app.errors import BrokerError, SettingsError
from processor.cli.errors import BadInputError
from processor.cli.lazy import LazyGroup
from processor.cli.output import (
    OutputError,
    ReaderGone,
    complain,
    flush,
    prepare_streams,
)
from processor.cli.stop import end_at_once_when_interrupted
from processor.engine.snapshot import SnapshotFormatError
from processor.vault.errors import VaultError
from replay.errors import StoreError
from schemas.wire import WireError

BAD_INPUT = 2
GC_THRESHOLDS = (50_000, 20, 100)
"""Conversations are large graphs that live long: collecting by default costs half of the time."""


COMMANDS = {
    "run": "run",
    "state": "query",
    "verify": "query",
    "affected": "query",
    "why": "query",
    "history": "query",
    "context": "query",
    "holds": "query",
    "topics": "topics",
    "produce": "produce",
    "tail": "tail",
    "worker": "worker",
    "archive": "archive",
    "replay": "replay",
    "serve": "serve",
    "health": "health",
    "dead-letters": "dead_letters",
    "token": "token",
    "usage": "usage",
    "keys": "keys",
    "erase": "erase",
    "evaluate": "evaluate",
    "memory": "memory",
}
"""Each command and its module, which is imported when it is asked for: the client of Kafka takes
longer to load than a query takes to answer."""


@click.group(
    cls=LazyGroup, modules=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="standfast")
def standfast() -> None:
    """Check, while a conversation runs, whether what is said next still rests on what stands."""


def main() -> None:
    """Run the command line; every failure a user can cause is one line on stderr and status 2."""
    end_at_once_when_interrupted()
    gc.set_threshold(*GC_THRESHOLDS)
    status = _status()
    with suppress(ReaderGone, OutputError):  # less important than what was said already
        if sys.stdout is not None:
            flush()
    sys.exit(status)


def _status() -> int:
    try:
        prepare_streams()
        status = standfast.main(standalone_mode=False)
        flush()
    except ReaderGone:
        return 0
    except click.exceptions.NoArgsIsHelpError as usage:
        click.echo(usage.format_message())
        complain("no command was given")
        return BAD_INPUT
    except click.ClickException as usage:
        return _failed(usage.format_message())
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        return _failed(f"{place}{error.strerror or error}")
    except (BadInputError, SettingsError, BrokerError) as error:
        return _failed(str(error))
    except (OutputError, StoreError, duckdb.Error) as error:
        return _failed(str(error))
    except (WireError, SnapshotFormatError, VaultError) as error:
        return _failed(str(error))
    return status if isinstance(status, int) else 0


def _failed(problem: str) -> int:
    complain(problem)
    return BAD_INPUT


if __name__ == "__main__":
    main()
