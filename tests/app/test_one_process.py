"""The whole pipeline in one process: nothing lost, nothing applied twice, memory bounded."""

from __future__ import annotations

import io
import tracemalloc
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from processor.app.dead_letters import DeadLetter
from processor.app.interpret import DeadLetterClass
from processor.app.one_process import OneProcess, Processed, Repeated
from replay.store import Store
from schemas.contract import UTTERANCE_BYTES_MAX
from tests.benchmarks.conversations import utterances

Json = dict[str, Any]


def statement(number: int, conversation: str = "c", **fields: object) -> Json:
    """One observation that rests on the one before."""
    premises = [f"o{number - 1}"] if number > 1 else []
    operation = {"op": "observe", "record": f"o{number}", "claim": "seen", "premises": premises}
    return {
        "conversation_id": conversation,
        "utterance_id": f"u{number}",
        "speaker": "ann",
        "at": "2026-03-01T02:31:00Z",
        "operations": [operation],
        **fields,
    }


def as_stream(lines: list[Json | bytes]) -> io.BytesIO:
    """The lines as a file."""
    written = [line if isinstance(line, bytes) else orjson.dumps(line) for line in lines]
    return io.BytesIO(b"\n".join(written))


def run(
    folder: Path, lines: list[Json | bytes], **bounds: int
) -> list[Processed | Repeated | DeadLetter]:
    """Every result of a run on a store in this folder."""
    with Store(folder / "store.duckdb") as store:
        return list(OneProcess(store, **bounds).run(as_stream(lines)))


def digests(folder: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """The digests of every conversation in the folder's store."""
    with Store(folder / "store.duckdb", read_only=True) as store:
        found = {}
        for tenant, conversation, _ in store.conversations():
            loaded = store.conversation(tenant, conversation)
            assert loaded is not None
            found[tenant, conversation] = (loaded.digest, loaded.state_digest())
        return found


HOSTILE: dict[str, bytes] = {
    "random bytes": Random(3).randbytes(400).replace(b"\n", b" ").replace(b"\r", b" "),
    "truncated": orjson.dumps(statement(1))[:-9],
    "deep nesting": b'{"metadata":' + b"[" * 100_000,
    "deep formula": b'{"operations":' + b'{"formula":' * 50_000,
    "huge number": orjson.dumps(statement(1))[:-1] + b',"metadata":{"n":1' + b"0" * 5_000 + b"}}",
    "infinite": orjson.dumps(statement(1))[:-1] + b',"metadata":{"n":1e999}}',
    "not a number": orjson.dumps(statement(1))[:-1] + b',"metadata":{"n":NaN}}',
    "lone surrogate": orjson.dumps(statement(1))[:-1] + b',"text":"\\ud800"}',
    "raw control character": orjson.dumps(statement(1))[:-1] + b',"text":"a\x01b"}',
    "unknown field": orjson.dumps(statement(1, colour="red")),
    "naive timestamp": orjson.dumps(statement(1, at="2026-03-01T02:31:00")),
    "a number as a timestamp": orjson.dumps(statement(1, at=1_772_332_260)),
    "no timestamp": orjson.dumps({k: v for k, v in statement(1).items() if k != "at"}),
    "hostile tenant": orjson.dumps(statement(1, tenant_id="a/../b")),
    "hostile id": orjson.dumps(statement(1, utterance_id="u\n1")),
    "one bad operation": orjson.dumps(statement(1, operations=[{"op": "erase"}])),
    "bad formula": orjson.dumps(
        statement(
            1, operations=[{"op": "observe", "record": "x", "claim": "y", "formula": "p & & q"}]
        )
    ),
    "a list": b"[1, 2]",
    "a string": b'"observe"',
    "not UTF-8": b'{"text": "\xff\xfe"}',
    "too long": b'{"text": "' + b"x" * 10_000_000 + b'"}',
}


def test_every_bad_line_is_named_and_every_good_line_processed(tmp_path: Path) -> None:
    """Bad lines become dead letters with their number; the lines between them are processed."""
    lines: list[Json | bytes] = []
    for number, bad in enumerate(HOSTILE.values(), start=1):
        lines += [bad, statement(number)]
    results = run(tmp_path, lines)
    letters = [result for result in results if isinstance(result, DeadLetter)]
    assert [letter.line.number for letter in letters] == list(range(1, 2 * len(HOSTILE), 2))
    assert all(letter.reason for letter in letters)
    processed = [result for result in results if isinstance(result, Processed)]
    assert [result.conversation.turn for result in processed] != []
    assert len(processed) == len(HOSTILE)
    assert processed[-1].conversation.turn == len(HOSTILE)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("naive timestamp", "at"),
        ("unknown field", "colour"),
        ("hostile tenant", "tenant_id"),
        ("hostile id", "utterance_id"),
        ("one bad operation", "operations.0.op"),
        ("bad formula", "operations.0.formula"),
        ("no timestamp", "at"),
    ],
)
def test_a_bad_field_is_named(tmp_path: Path, name: str, place: str) -> None:
    """The reason of a dead letter names the field that is to blame."""
    (letter,) = run(tmp_path, [HOSTILE[name]])
    assert isinstance(letter, DeadLetter)
    assert letter.place == place


def test_a_formula_error_says_where_in_the_text(tmp_path: Path) -> None:
    """A formula that does not parse is refused with the position of the error."""
    (letter,) = run(tmp_path, [HOSTILE["bad formula"]])
    assert isinstance(letter, DeadLetter)
    assert "4" in letter.problem


def test_memory_stays_flat_under_bad_lines(tmp_path: Path) -> None:
    """Two hundred lines of a megabyte and more cost no more memory than twenty."""

    def peak(count: int) -> int:
        too_long = b"x" * (UTTERANCE_BYTES_MAX + 10) + b"\n"
        with Store(tmp_path / f"{count}.duckdb") as store:
            process = OneProcess(store)
            tracemalloc.start()
            for _ in process.run(_Repeating(too_long, count)):
                pass
            _, highest = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        return highest

    assert peak(200) < 1.2 * peak(20)


class _Repeating(io.RawIOBase):
    """A stream that gives the same line again and again without holding it more than once."""

    def __init__(self, line: bytes, count: int) -> None:
        self._line, self._left, self._position = line, count, 0

    def readline(self, size: int | None = -1) -> bytes:
        """Part of the current line, at most `size` bytes."""
        if self._left == 0:
            return b""
        end = len(self._line) if size is None or size < 0 else self._position + size
        part = self._line[self._position : end]
        self._position += len(part)
        if self._position >= len(self._line):
            self._position, self._left = 0, self._left - 1
        return part


def test_any_split_into_runs_gives_equal_digests(tmp_path: Path) -> None:
    """A stream processed in one run or in several, in any split, ends in the same digests."""
    stream: list[Json | bytes] = list(utterances(60))
    whole = tmp_path / "whole"
    whole.mkdir()
    run(whole, stream)
    for split, cuts in enumerate([(0, 1, 60), (0, 7, 8, 33, 60), tuple(range(0, 61, 5))]):
        folder = tmp_path / str(split)
        folder.mkdir()
        for start, end in pairwise(cuts):
            run(folder, stream[start:end])
        assert digests(folder) == digests(whole)


def test_running_the_same_input_again_changes_nothing(tmp_path: Path) -> None:
    """Utterances that the log has already are no-ops: no event, equal digests."""
    stream: list[Json | bytes] = [statement(1), statement(2), statement(3)]
    run(tmp_path, stream)
    before = digests(tmp_path)
    again = run(tmp_path, stream)
    assert all(isinstance(result, Repeated) for result in again)
    assert digests(tmp_path) == before


def test_an_id_with_other_content_is_a_dead_letter(tmp_path: Path) -> None:
    """The same id with other content is not silently dropped."""
    results = run(tmp_path, [statement(1), statement(1, text="something else")])
    assert isinstance(results[1], DeadLetter)
    assert results[1].dead_letter_class is DeadLetterClass.ID_REUSED


def test_more_hearers_than_a_log_event_holds_is_a_dead_letter(tmp_path: Path) -> None:
    """Speakers hear what they say, so they count towards the bound of an audience."""
    crowd = [f"a{number}" for number in range(256)]
    results = run(tmp_path, [statement(1, audience=crowd), statement(2, audience=crowd[:-1])])
    assert isinstance(results[0], DeadLetter)
    assert results[0].place == "audience"
    assert isinstance(results[1], Processed)


def test_a_setup_later_on_is_a_dead_letter(tmp_path: Path) -> None:
    """Only the first event of a conversation may be a setup."""
    setup = {
        "conversation_id": "c",
        "utterance_id": "s",
        "speaker": "ann",
        "at": "2026-03-01T02:31:00Z",
        "kind": "setup",
        "agents": [{"id": "ann"}],
    }
    results = run(tmp_path, [statement(1), setup])
    assert isinstance(results[1], DeadLetter)
    assert results[1].dead_letter_class is DeadLetterClass.SETUP_NOT_FIRST


def test_dropping_conversations_from_memory_changes_no_digest(tmp_path: Path) -> None:
    """With room for two or three of ten interleaved conversations the outcome is the same."""
    lines: list[Json | bytes] = [
        statement(number, conversation=f"c{which}")
        for number in range(1, 12)
        for which in range(10)
    ]
    for name, bounds in (("tight", {"records_max": 40}), ("wide", {})):
        (tmp_path / name).mkdir()
        run(tmp_path / name, lines, **bounds)
    assert digests(tmp_path / "tight") == digests(tmp_path / "wide")


def test_two_tenants_never_see_each_other(tmp_path: Path) -> None:
    """The same ids under two tenants, interleaved, are two conversations with their own records."""
    lines: list[Json | bytes] = []
    for number in range(1, 201):
        lines += [
            statement(number, tenant_id="red", text="r"),
            statement(number, tenant_id="blue", text="b"),
        ]
    lines.append(
        statement(
            201,
            tenant_id="blue",
            operations=[{"op": "revise", "target": "o1", "by": {"record": "x", "claim": "no"}}],
        )
    )
    run(tmp_path, lines)
    with Store(tmp_path / "store.duckdb", read_only=True) as store:
        red, blue = store.conversation("red", "c"), store.conversation("blue", "c")
    assert red is not None
    assert blue is not None
    assert red.state.records["o200"].grounded
    assert not blue.state.records["o200"].grounded
    assert len(red.state.records) == 200
    assert len(blue.state.records) == 201
