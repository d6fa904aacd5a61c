"""Dead letters: each once, however often a run is repeated or killed."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from processor.app.dead_letters import DeadLetter, DeadLetterFile
from processor.app.interpret import DeadLetterClass
from processor.app.lines import Line


def bad_line(number: int, content: bytes = b"garbage") -> DeadLetter:
    """A line that nobody can read."""
    return DeadLetter(Line(number, content, len(content)), DeadLetterClass.INVALID, "", "no JSON")


def write(path: Path, *letters: tuple[str, DeadLetter]) -> None:
    """What one run writes."""
    with DeadLetterFile(path) as file:
        for source, letter in letters:
            file.write(source, letter)


def written(path: Path) -> list[tuple[str, int]]:
    """Source and line of every letter in the file."""
    letters = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    return [(letter["source"], letter["line"]) for letter in letters]


def test_a_letter_is_written_once_however_often_it_comes(tmp_path: Path) -> None:
    """The same bytes at the same line of the same source are the same letter, in any run."""
    path = tmp_path / "dead-letters.jsonl"
    for _ in range(3):
        write(path, ("a", bad_line(1)), ("a", bad_line(2)), ("a", bad_line(1)))
    assert written(path) == [("a", 1), ("a", 2)]


def test_another_source_line_or_content_is_another_letter(tmp_path: Path) -> None:
    """None of the three is left out because the other two are known."""
    path = tmp_path / "dead-letters.jsonl"
    write(path, ("a", bad_line(1)))
    write(path, ("b", bad_line(1)), ("a", bad_line(2)), ("a", bad_line(1, b"rubbish")))
    assert written(path) == [("a", 1), ("b", 1), ("a", 2), ("a", 1)]


def test_half_a_letter_is_ended_and_written_again(tmp_path: Path) -> None:
    """After a kill in the middle of a letter the next run writes it whole on a line of its own."""
    path = tmp_path / "dead-letters.jsonl"
    write(path, ("a", bad_line(1)), ("a", bad_line(2)))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    write(path, ("a", bad_line(1)), ("a", bad_line(2)))
    lines = path.read_bytes().splitlines()
    assert b"\n".join([lines[0], lines[2]]) + b"\n" == whole


def test_what_others_wrote_into_the_file_is_passed_over(tmp_path: Path) -> None:
    """Lines that are no letters, of any length, neither fail nor are held in memory."""
    path = tmp_path / "dead-letters.jsonl"
    path.write_bytes(b"[1]\nnull\n\xff\n" + b"x" * 3_000_000 + b"\n")
    write(path, ("a", bad_line(1)))
    assert path.read_bytes().count(b"\n") == 5


def test_a_source_whose_name_is_no_text_is_written_all_the_same(tmp_path: Path) -> None:
    """A file name of any bytes can be said in JSON."""
    path = tmp_path / "dead-letters.jsonl"
    write(path, ("\udcff.jsonl", bad_line(1)))
    assert written(path) == [("\\xff.jsonl", 1)]


def test_a_failure_names_the_file(tmp_path: Path) -> None:
    """Whoever reads the error learns that it was about the dead letters."""
    with pytest.raises(OSError, match="regular file") as failed:
        write(tmp_path, ("a", bad_line(1)))
    assert failed.value.filename == str(tmp_path)
