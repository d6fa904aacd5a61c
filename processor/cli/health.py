"""`standfast health`: whether the worker, archive or server on this machine lives."""

from __future__ import annotations

import os
import re
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import click

from processor.app.setting_kinds import is_host, is_port
from processor.cli.errors import BadInputError
from processor.cli.output import complain, printable

PORT_SETTING = "STANDFAST_WORKER_LISTEN_PORT"
SECONDS_MAX = 5.0
BYTES_MAX = 65_536
"""What is read of an answer; /livez says one line."""
_URL = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:[0-9]{1,5})?(/[!-~]*)?", re.ASCII)


@click.command()
@click.option(
    "--url",
    help=f"What to ask; without it, /livez on this machine at the port of {PORT_SETTING}.",
)
def health(url: str | None) -> int:
    """Ask /livez; the status is 0 if the answer is 200, and else 1, with the reason."""
    asked = url or _own()
    if not _is_address(asked):
        raise BadInputError(f"--url: {asked}: an address reads http://HOST:PORT/livez")
    # This machine is asked without a detour, by whatever a proxy or the answer would name.
    opener = build_opener(ProxyHandler({}), _NoRedirect())
    try:
        with opener.open(asked, timeout=SECONDS_MAX) as answer:
            said = answer.read(BYTES_MAX).decode(errors="replace").strip()
    except HTTPError as answered:
        complain(f"{asked}: status {answered.code}")
        return 1
    except (URLError, OSError, HTTPException) as silent:
        complain(f"{asked}: {getattr(silent, 'reason', silent)}")
        return 1
    click.echo(printable(said))
    return 0


class _NoRedirect(HTTPRedirectHandler):
    """What answers with another address does not say that it lives."""

    def redirect_request(
        self,
        req: Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        """None leaves the answer as it is: a status that is not 200."""


def _is_address(url: str) -> bool:
    """Whether it can be asked at all; user and password have no place in it."""
    try:
        parts = urlsplit(url)
        return _URL.fullmatch(url) is not None and parts.port != 0 and is_host(parts.hostname or "")
    except ValueError:
        return False


def _own() -> str:
    """The address of what runs with these settings. Raises BadInputError."""
    port = os.environ.get(PORT_SETTING, "")
    if not is_port(port):
        raise BadInputError(f"give --url http://HOST:PORT/livez, or set {PORT_SETTING} to a port")
    return f"http://127.0.0.1:{port}/livez"
