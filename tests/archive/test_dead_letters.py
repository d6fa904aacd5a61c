"""`standfast dead-letters` on Apache Kafka: what is shown, what is sent again, what comes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from processor.app.partitions import partition_of
from tests.archive.archives import COMMAND, SECONDS_MAX, make_topics, send
from tests.kafka.cluster import Kafka
from tests.kafka.software import ROOT
from tests.pipeline.workers import (
    PARTITIONS,
    places,
    read,
    say,
    stop,
    wait_until_done,
    work_through,
)

KEY = b"acme/c1"
HARD = orjson.dumps([{"op": "observe", "record": "o1", "claim": "a hard one"}]).decode()


@pytest.fixture
def bootstrap(empty_kafka: Kafka) -> str:
    """The shared broker with our topics, all of them empty."""
    make_topics(empty_kafka.bootstrap, PARTITIONS)
    return empty_kafka.bootstrap


def letters(bootstrap: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run `standfast dead-letters`."""
    command, *rest = arguments
    return subprocess.run(
        [*COMMAND, "dead-letters", command, "--bootstrap", bootstrap, *rest],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=SECONDS_MAX,
    )


def as_json(ran: subprocess.CompletedProcess[bytes], status: int = 0) -> list[Any]:
    """What a command that was asked for JSON said."""
    assert ran.returncode == status, ran.stderr
    return [orjson.loads(line) for line in ran.stdout.splitlines()]


def utterance(utterance_id: str, conversation: str = "c1", **fields: Any) -> dict[str, Any]:
    """What acme says in a conversation."""
    return {
        **{"tenant_id": "acme", "conversation_id": conversation, "utterance_id": utterance_id},
        **{"speaker": "ann", "at": "2026-03-01T02:31:00Z", **fields},
    }


def letter(value: bytes | None, class_: str, key: bytes = KEY, **more: str) -> tuple[str, Any]:
    """A dead letter as a record of its topic."""
    headers = {
        **{"reason": "for a test", "class": class_, "attempts": "2", "tenant": "acme"},
        **{"source_topic": "utterances", "source_partition": "1", "source_offset": "7", **more},
    }
    told = [(name, text.encode()) for name, text in headers.items()]
    return "dead-letters", {"key": key, "value": value, "partition": 2, "headers": told}


def test_letters_are_listed_with_where_they_stand_and_why(bootstrap: str) -> None:
    """Every field of the headers, and the filters by tenant, conversation and class."""
    send(
        bootstrap,
        [
            letter(b"{}", "invalid"),
            letter(b"start", "too_long", b"acme/c2", sha256="ab" * 32),
            letter(b"{}", "invalid", b"other/c1"),
        ],
    )
    first, second, third = as_json(letters(bootstrap, "list", "--json"))
    assert first.pop("at").endswith("Z")
    assert first == {
        **{"partition": 2, "offset": 0, "tenant_id": "acme", "conversation_id": "c1"},
        **{"class": "invalid", "reason": "for a test", "attempts": 2, "bytes": 2},
        **{"source_topic": "utterances", "source_partition": 1, "source_offset": 7},
        **{"truncated": False, "sha256": None},
    }
    assert (second["truncated"], second["sha256"]) == (True, "ab" * 32)
    assert (third["tenant_id"], third["offset"]) == ("other", 2)
    for filters, offsets in (
        (("--tenant", "acme"), [0, 1]),
        (("--conversation", "c1"), [0, 2]),
        (("--tenant", "acme", "--conversation", "c1"), [0]),
        (("--class", "invalid"), [0, 2]),
        (("--class", "id_reused"), []),
    ):
        found = as_json(letters(bootstrap, "list", "--json", *filters))
        assert [each["offset"] for each in found] == offsets


def test_hostile_letters_are_shown_and_steer_no_terminal(bootstrap: str) -> None:
    """Control characters, missing headers and bytes that are no text stay on their lines."""
    send(
        bootstrap,
        [
            letter(b"x", "\x1b[2Jinvalid\n", b"a\x1b]0;/\xff\r", reason="\x07\u202ered\x9b31m"),
            letter(b"x", "[red]not markup[/]", attempts="-1", source_offset="9" * 30),
            ("dead-letters", {"value": b"x", "partition": 0}),
            ("dead-letters", {"key": KEY, "value": None, "partition": 1}),
        ],
    )
    shown = letters(bootstrap, "list")
    assert (shown.returncode, shown.stderr) == (0, b"")
    text = shown.stdout.decode()
    assert len(text.splitlines()) == 8
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "[red]not markup[/]" in text
    assert len(as_json(letters(bootstrap, "list", "--json"))) == 4
    refused = letters(bootstrap, "requeue", "--all")
    assert refused.returncode == 1
    assert b"\x1b" not in refused.stdout
    assert b"4 refused" in refused.stdout
    assert read(bootstrap, "utterances") == []


def test_what_could_only_come_back_is_refused(bootstrap: str) -> None:
    """Each with its reason and status 1; the rest is sent, each original once, where it belongs."""
    good = orjson.dumps(utterance("u1", operations=[]))
    elsewhere = letter(good, "not_interpreted", b"acme/c2")
    send(
        bootstrap,
        [
            letter(good, "wrong_key"),
            letter(good, "id_reused"),
            letter(good, "setup_not_first"),
            letter(good[:9], "too_long", sha256="ab" * 32),
            letter(b"\xff", "invalid"),
            letter(good, "of another version"),
            letter(good, "not_interpreted", source_topic="operations"),
            elsewhere,
            letter(good, "wrong_partition"),
            letter(good, "not_interpreted"),
        ],
    )
    done = as_json(letters(bootstrap, "requeue", "--all", "--json"), status=1)
    assert [each["outcome"] for each in done] == [*["refused"] * 8, "requeued", "repeated"]
    reasons = [each["reason"] for each in done[:8]]
    assert all(reasons)
    assert "only the first 9 bytes" in reasons[3]
    (sent,) = read(bootstrap, "utterances")
    assert (sent.key, sent.value) == (KEY, good)
    assert sent.partition == partition_of(KEY, PARTITIONS)
    assert dict(sent.headers)["requeued"] == b"2/8"
    assert dict(sent.headers)["ce_type"] == b"standfast.utterance.v1"


def test_letters_are_named_by_their_places(bootstrap: str) -> None:
    """In the order given; a place that is none, or nothing named at all, is one line and sends."""
    values = [orjson.dumps(utterance(f"u{n}", operations=[])) for n in range(4)]
    send(bootstrap, [letter(value, "not_interpreted") for value in values])
    for wrong in (
        ("2/1", "2/4"),
        ("9/0",),
        ("2-1",),
        (),
        ("2/1", "--all"),
        ("2/1", "--tenant", "acme"),
        ("--tenant", "acme"),
        ("--all", "--tenant", "a b"),
    ):
        ran = letters(bootstrap, "requeue", *wrong)
        assert (ran.returncode, ran.stderr.count(b"\n")) == (2, 1), wrong
    assert read(bootstrap, "utterances") == []
    assert letters(bootstrap, "requeue", "2/3", "2/1").returncode == 0
    assert [each.value for each in read(bootstrap, "utterances")] == [values[3], values[1]]


@contextmanager
def scripted_worker(bootstrap: str, store: Path, mode: str) -> Iterator[None]:
    """A worker with an interpreter; it works until all is done and stops."""
    log = store.with_suffix(".log")
    with (
        log.open("ab") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "tests.archive.scripted_worker", bootstrap, str(store), mode],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"started\n"
            yield
            wait_until_done(bootstrap)
            assert stop(process) == 0
        except BaseException:
            print(log.read_text()[-10_000:])
            raise
        finally:
            process.kill()


def verdicts(bootstrap: str) -> dict[str, Any]:
    """The coverage that each draft was answered with."""
    found = [orjson.loads(each.value) for each in read(bootstrap, "verdicts")]
    drafts = [each for each in found if each["candidate"] is not None]
    return {each["candidate"]["utterance_id"]: each["coverage"] for each in drafts}


def draft(utterance_id: str) -> dict[str, Any]:
    """A draft that rests on what can be read."""
    return utterance(utterance_id, kind="candidate", claims=[{"record": "o2"}])


def test_requeued_letters_fill_their_turns(bootstrap: str, tmp_path: Path) -> None:
    """Verdicts are complete again, twice changes nothing, and every process folds it the same."""
    store = tmp_path / "worker.duckdb"
    read_easily = [{"op": "observe", "record": "o2", "claim": "easy"}]
    said = [utterance("u1", text=HARD), utterance("u2", operations=read_easily), draft("d1")]
    with scripted_worker(bootstrap, store, "fails"):
        say(bootstrap, said)
    (found,) = as_json(letters(bootstrap, "list", "--json"))
    assert (found["class"], found["reason"], found["attempts"]) == (
        "not_interpreted",
        "too hard",
        1,
    )
    assert verdicts(bootstrap)["d1"]["missing_turns"] == [1]
    with scripted_worker(bootstrap, store, "reads"):
        assert letters(bootstrap, "requeue", "--all", "--tenant", "acme").returncode == 0
        say(bootstrap, [draft("d2")])
        wait_until_done(bootstrap)
        assert letters(bootstrap, "requeue", f"{found['partition']}/0").returncode == 0
        say(bootstrap, [draft("d3")])
    answered = verdicts(bootstrap)
    assert [answered[each]["complete"] for each in ("d1", "d2", "d3")] == [False, True, True]
    events = [orjson.loads(each.value) for each in read(bootstrap, "operations")]
    fills = [each for each in events if each.get("fills_turn") is not None]
    assert [(each["turn"], each["fills_turn"]) for each in fills] == [(3, 1)]
    assert fills[0]["provenance"]["tokens_in"] == 7
    assert len(as_json(letters(bootstrap, "list", "--json"))) == 1
    another = tmp_path / "another.duckdb"
    work_through(bootstrap, another)
    assert places(another) == places(store)
    assert len(places(store)) == 6
