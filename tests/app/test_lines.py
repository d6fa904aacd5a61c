"""Reading lines in bounded memory."""

from __future__ import annotations

import hashlib
import io

import pytest

from processor.app.lines import read_lines


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"", []),
        (b"a", [(1, b"a")]),
        (b"a\n", [(1, b"a")]),
        (b"a\r\nb", [(1, b"a"), (2, b"b")]),
        (b"\n \n\t\na\n\n", [(4, b"a")]),
        (b"12345678\n", [(1, b"12345678")]),
        (b"\xef\xbb\xbfa\nb", [(1, b"a"), (2, b"b")]),
    ],
)
def test_lines_are_numbered_as_editors_number_them(
    written: bytes, expected: list[tuple[int, bytes]]
) -> None:
    """Blank lines are skipped but counted; the end of a line is not part of it."""
    read = [(line.number, line.content) for line in read_lines(io.BytesIO(written), limit=8)]
    assert read == expected


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_line_that_is_too_long_is_skipped_with_its_size_and_hash(end: bytes) -> None:
    """Nothing of it is kept but its start, and the next line is read as usual."""
    long = b"x" * 200_000
    following = b"ok\n" if end else b""
    lines = list(read_lines(io.BytesIO(long + end + following), limit=8))
    assert lines[0].content is None
    assert lines[0].size == len(long)
    assert lines[0].sha256 == hashlib.sha256(long).hexdigest()
    assert [line.content for line in lines[1:]] == ([b"ok"] if end else [])
