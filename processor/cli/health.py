"""`standfast health`: whether the worker, archive or server on this machine lives."""

from __future__ import annotations

import os
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import click

from processor.cli.errors import BadInputError
from processor.cli.output import complain

PORT_SETTING = "STANDFAST_WORKER_LISTEN_PORT"
SECONDS_MAX = 5.0


@click.command()
@click.option(
    "--url",
    help=f"What to ask; without it, /livez on this machine at the port of {PORT_SETTING}.",
)
def health(url: str | None) -> int:
    """Ask /livez; the status is 0 if the answer is 200, and else 1, with the reason."""
    asked = url or _own()
    if urlsplit(asked).scheme not in ("http", "https"):
        raise BadInputError(f"--url: {asked}: an address reads http://HOST:PORT/livez")
    opener = build_opener(ProxyHandler({}))  # this machine is asked without a detour
    try:
        with opener.open(asked, timeout=SECONDS_MAX) as answer:
            click.echo(answer.read().decode(errors="replace").strip())
    except HTTPError as answered:
        complain(f"{asked}: status {answered.code}")
        return 1
    except (URLError, OSError, HTTPException) as silent:
        complain(f"{asked}: {getattr(silent, 'reason', silent)}")
        return 1
    return 0


def _own() -> str:
    """The address of what runs with these settings. Raises BadInputError."""
    port = os.environ.get(PORT_SETTING, "")
    if not port.isdecimal():
        raise BadInputError(f"give --url http://HOST:PORT/livez, or set {PORT_SETTING}")
    return f"http://127.0.0.1:{port}/livez"
