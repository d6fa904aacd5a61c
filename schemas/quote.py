"""Text from outside inside a text of ours: where it ends cannot be forged."""

from __future__ import annotations

import json
import re

_CONTROL = re.compile(r"<|\[(?=/?[A-Z_]+\])")
"""How the control tokens of chat templates begin: `<|...|>`, `</s>`, `[INST]` and their like."""


def quoted(text: str) -> str:
    """The text as a JSON string on one line, all of it visible.

    Line ends, invisible characters and what could be read as a control token stand there as
    escapes, so the string reads back as the text and shows nothing that is not there.
    """
    return quoted_json(json.dumps(text, ensure_ascii=False))


def quoted_beginning(text: str, most: int) -> str:
    """The text in quotes; of one of more than `most` characters so many, and that it goes on."""
    return quoted(text) if len(text) <= most else f"{quoted(text[:most])} (goes on)"


def quoted_json(written: str) -> str:
    """JSON without line breaks in the same visible form."""
    if not written.isprintable():
        written = "".join(map(_visible, written))
    return _CONTROL.sub(lambda found: _escaped(found[0]), written)


def _visible(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}"
