"""`standfast token`: a new bearer token for the gate."""

from __future__ import annotations

import re
from datetime import timedelta

import click

from processor.app.web.tokens import Scope, new_token
from processor.cli.errors import BadInputError
from processor.cli.output import json_option, write_json, write_line
from schemas.ids import TENANT_PATTERN
from schemas.wire import canonical_bytes

DAYS_MAX = 3_650


@click.command()
@click.option("--tenant", "tenant_id", required=True, help="Whose conversations it opens.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="What it allows; may be given several times.",
)
@click.option("--days", type=click.IntRange(1, DAYS_MAX), help="How long it is valid.")
@json_option
def token(tenant_id: str, scopes: tuple[str, ...], days: int | None, as_json: bool) -> int:
    """Print a new token, and the line for the file that STANDFAST_WORKER_TOKENS names.

    The line holds the token's hash only. The token is shown once, and kept nowhere.
    """
    if not re.fullmatch(TENANT_PATTERN.rstrip("$"), tenant_id):
        raise BadInputError(f"--tenant: {tenant_id!r} is no tenant id")
    allowed = tuple(scope for scope in Scope if scope.value in scopes)
    made, line = new_token(tenant_id, allowed, None if days is None else timedelta(days=days))
    if as_json:
        write_json({"token": made, "line": line})
        return 0
    write_line(made.encode())
    write_line(canonical_bytes(line))
    return 0
