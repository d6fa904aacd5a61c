"""The page of a conversation: one HTML file with its data, script and styles inside.

What was said is data: it stands in a block that is no script, with every character escaped that
could end it, and the script puts it on the page as text only. The policy in the page's head lets
nothing run or load but these very styles and this very script, which it knows by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files
from typing import NamedTuple, final

_SCRIPTS = ("model.js", "draw.js", "map.js", "details.js", "list.js", "page.js")
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@final
class Page(NamedTuple):
    """A page and the policy that lets it work, which a server says in a header as well."""

    html: bytes
    policy: str


def report_page(
    data: bytes, title: str, *, live: str | None = None, home: str | None = None
) -> Page:
    """The page that shows these data, which are JSON.

    `live` is where a server has the same data as they grow; without it the page asks nobody for
    anything. `home` is where the list of the other conversations is.
    """
    policy = _policy("'self'" if live is not None else "'none'")
    parts = {
        "TITLE": escape(title),
        "POLICY": escape(policy),
        "STYLE": style(),
        "SCRIPT": _script(),
        "LIVE": escape(live or ""),
        "HOME": ""
        if home is None
        else f'<p class="home"><a href="{escape(home)}">Conversations</a></p>',
        "DATA": inert(data.decode()),
    }
    return Page(fill(_read("report.html"), parts).encode(), policy)


def fill(template: str, parts: dict[str, str]) -> str:
    """The template with each `{{NAME}}` replaced once; what is put in is not looked at again."""
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def inert(json: str) -> str:
    """The same JSON with nothing in it that means anything to a reader of HTML."""
    for character, escaped in _UNSAFE.items():
        json = json.replace(character, escaped)
    return json


def content_hash(text: str) -> str:
    """What a policy calls an inline script or style."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _policy(connect: str) -> str:
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {content_hash(_script())}",
            f"style-src {content_hash(style())}",
            f"connect-src {connect}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


@cache
def _script() -> str:
    parts = "\n".join(_read(name) for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'


@cache
def style() -> str:
    """The styles, of this page and of the lists beside it."""
    return _read("report.css")


def _read(name: str) -> str:
    return (files("replay.report") / name).read_text(encoding="utf-8")
