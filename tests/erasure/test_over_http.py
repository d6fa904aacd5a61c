"""Erasing through the gate of real workers on Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from processor.app.messages import DEAD_LETTERS, KEYS, OPERATIONS
from processor.app.web.tokens import Scope
from processor.vault.key_folder import KeyFolder
from processor.vault.sealed import is_sealed
from processor.vault.tenant_keys import add_tenant_key
from tests.archive.archives import archive
from tests.erasure.sites import CANARY, found_in, statement, told
from tests.faults.gates import (
    LINE,
    TOKEN,
    Answer,
    Gated,
    Pair,
    addresses,
    gated,
    here,
    two_workers,
)
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import make_topics, read, say, stop, wait_until_done
from tests.waiting import wait_until
from tests.web.fake import token_for, write_tokens

ERASE, MAY_ERASE = token_for("acme", Scope.ERASE)
OTHER, OTHERS_MAY = token_for("other", Scope.ERASE)


def erase(worker: Gated, conversation: str, token: str = ERASE) -> Answer:
    """Ask for an erasure."""
    return worker.ask(here(conversation), token, method="DELETE")


def key_records(bootstrap: str) -> list[tuple[str, str]]:
    """Type and conversation of each record of the keys that says something."""
    values = [orjson.loads(each.value or b"{}") for each in read(bootstrap, KEYS)]
    return [(each["type"], each["conversation_id"]) for each in values if each]


def ends(bootstrap: str) -> list[bytes]:
    """The conversations whose log says that they are over, in order, each as often as it does."""
    said = [each for each in read(bootstrap, OPERATIONS) if not is_sealed(each.value)]
    kind = "standfast.conversation_erased.v1"
    return sorted(each.key for each in said if orjson.loads(each.value)["type"] == kind)


@pytest.fixture
def pair(empty_kafka: Kafka, tmp_path: Path) -> Iterator[Pair]:
    """Two workers with a key file; what `old` said before there was one stands in the clear."""
    bootstrap, (address,) = empty_kafka.bootstrap, addresses(1)
    make_topics(bootstrap)
    write_tokens(tmp_path / "tokens", LINE, MAY_ERASE, OTHERS_MAY)
    with gated(bootstrap, tmp_path / "before.duckdb", address, []) as worker:
        say(bootstrap, [statement("old", 1, "word")])
        wait_until_done(bootstrap)
        refused = erase(worker, "old")
        assert worker.process is not None
        assert stop(worker.process) == 0
    assert (refused.status, refused.said["type"].rpartition(":")[2]) == (409, "kept-in-the-clear")
    add_tenant_key(tmp_path / "keys", "*", "k1")
    lines = (LINE, MAY_ERASE, OTHERS_MAY)
    key_file = str(tmp_path / "keys")
    with two_workers(bootstrap, tmp_path, *lines, STANDFAST_WORKER_KEY_FILE=key_file) as workers:
        yield Pair(bootstrap, workers, tmp_path)


def test_whoever_is_asked_erases_as_the_command_does(pair: Pair) -> None:
    """Both workers erase and answer alike, once or again; the neighbour stays as it was."""
    said = [*told("told", CANARY), *told("kept", "harmless")]
    say(pair.bootstrap, [*said, statement("old", 2, "word")])
    wait_until_done(pair.bootstrap)
    folder = pair.folder / "archive"
    copied = archive(pair.bootstrap, folder, "--key-file", str(pair.folder / "keys"))
    assert copied.returncode == 0, copied.stderr
    before = pair.workers[0].ask(f"{here('kept')}/state", TOKEN).said

    known = [erase(worker, "kept", OTHER)[:2] for worker in pair.workers]
    unknown = [erase(worker, "nobody")[:2] for worker in pair.workers]
    assert known == unknown
    assert {status for status, _ in known} == {404}
    answers = [erase(worker, "told") for worker in (*pair.workers, pair.workers[0])]
    whole = {"tenant_id": "acme", "conversation_id": "told", "in_the_clear": 0}
    assert [(each.status, each.said) for each in answers] == [(200, whole)] * 3
    assert erase(pair.workers[0], "old").said["in_the_clear"] == 1
    for worker in pair.workers:
        assert worker.ask(f"{here('told')}/state", TOKEN).status == 404
        assert worker.ask(f"{here('kept')}/state", TOKEN).said == before

    assert ends(pair.bootstrap) == [b"acme/old", b"acme/told"]
    say(pair.bootstrap, [statement("told", 70, CANARY)])
    wait_until_done(pair.bootstrap)
    (letter,) = [each for each in read(pair.bootstrap, DEAD_LETTERS) if each.value == b""]
    assert (letter.key, dict(letter.headers)["class"]) == (b"acme/told", b"erased")
    copied = archive(pair.bootstrap, folder, "--key-file", str(pair.folder / "keys"))
    assert copied.returncode == 0, copied.stderr
    kept = KeyFolder(folder.with_name("archive.keys"))
    assert [key.conversation_id for key in kept.every()] == ["kept"]
    assert [stop(each.process) for each in pair.workers if each.process is not None] == [0, 0]
    assert found_in(CANARY, pair.folder) == []


def test_keys_that_are_away_are_no_erasure(pair: Pair) -> None:
    """503, and nothing says that anything was destroyed; once they are back it is erased."""
    say(pair.bootstrap, told("told", CANARY))
    wait_until_done(pair.bootstrap)
    (pair.folder / "keys").rename(pair.folder / "away")
    for worker in pair.workers:
        answer = erase(worker, "told")
        assert (answer.status, answer.said["type"]) == (503, "urn:standfast:problem:keys-away")
        assert "Retry-After" in answer.headers
    assert {kind for kind, _ in key_records(pair.bootstrap)} == {"standfast.data_key.v1"}
    assert ends(pair.bootstrap) == []
    (pair.folder / "away").rename(pair.folder / "keys")
    wait_until(lambda: erase(pair.workers[0], "told").status == 200)
    assert ends(pair.bootstrap) == [b"acme/told"]
