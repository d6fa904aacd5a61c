"""Quoted text reads back as it was and shows everything that it holds."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from schemas.quote import quoted


@given(st.text() | st.text('<[]/|INST_\u202e\n\u2028a\\"'))
def test_quoted_text_reads_back_and_is_visible(text: str) -> None:
    """Any text becomes one printable line of JSON without the beginning of a control token."""
    written = quoted(text)
    assert json.loads(written) == text
    assert written.isprintable()
    assert "<" not in written
    assert "[INST]" not in written
    assert "[/INST]" not in written


def test_ordinary_text_is_left_as_it_is() -> None:
    """Letters of any script and ordinary brackets are not escaped."""
    assert quoted("Größe [siehe Anhang], 漢字 [A1]") == '"Größe [siehe Anhang], 漢字 [A1]"'
