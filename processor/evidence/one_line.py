"""What was said, as part of a line: it must not pass for lines of ours."""

from __future__ import annotations


def one_line(text: str) -> str:
    """The text with a space for each character that could break a line or steer a terminal."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)
