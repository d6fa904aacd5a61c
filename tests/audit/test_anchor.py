"""Signed heads tell what no chain of hashes can: a tail that was cut, a log that was made up."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from replay.audit.run import audit
from tests.app.test_one_process import run, statement
from tests.audit.stores import execute
from tests.replay.test_store import standfast

TABLES = ("log", "derived", "snapshots")


@pytest.fixture(scope="module")
def anchored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, an anchor of it, and the key."""
    folder = tmp_path_factory.mktemp("anchored")
    run(folder, [statement(number, conversation=name) for number in range(1, 21) for name in "cd"])
    made = standfast(
        *("replay", "anchor", "--db", folder / "store.duckdb", "--key", folder / "key.pem"),
        *("--new-key", "--out", folder / "anchor.jsonl"),
    )
    assert (made.returncode, made.stderr) == (0, b"")
    assert b"2 logs anchored" in made.stdout
    assert (folder / "key.pem").stat().st_mode & 0o077 == 0
    return folder


def test_a_cut_off_tail_is_found_with_an_anchor(anchored: Path, tmp_path: Path) -> None:
    """A log without its end, and without all that came of it, is clean but for the anchor."""
    shutil.copy(anchored / "store.duckdb", path := tmp_path / "cut.duckdb")
    gone = "WHERE conversation_id = 'd' AND sequence > 17"
    execute(path, [f"DELETE FROM {table} {gone}" for table in TABLES])
    assert audit(path).divergences == []
    (divergence,) = audit(path, anchor=anchored / "anchor.jsonl").divergences
    told = "log, default/d, sequence 20: is missing: the anchor has the log up to here"
    assert divergence.line() == told


def test_a_log_that_was_made_up_is_found_with_an_anchor(anchored: Path, tmp_path: Path) -> None:
    """Another log that is consistent in itself does not have the digest of the anchored one."""
    lines = [statement(number, conversation="c", speaker="eve") for number in range(1, 21)]
    lines += [statement(number, conversation="d") for number in range(1, 23)]
    run(tmp_path, list(lines))
    path = tmp_path / "store.duckdb"
    assert audit(path).divergences == []
    (divergence,) = audit(path, anchor=anchored / "anchor.jsonl").divergences
    assert (divergence.where.conversation_id, divergence.column) == ("c", "digest")


def test_the_command_checks_whose_signature_it_is(anchored: Path, tmp_path: Path) -> None:
    """The public key beside the private one is accepted, and the anchor's key is told."""
    done = standfast(
        *("replay", "audit", "--db", anchored / "store.duckdb"),
        *("--anchor", anchored / "anchor.jsonl", "--public-key", anchored / "key.pem.pub"),
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"compared with an anchor signed by" in done.stdout


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.replace(b'"sequence":20', b'"sequence":19', 1),
        lambda content: content[: content.rindex(b"\n", 0, -1) + 1],
        lambda content: content.replace(b"standfast.anchor.v1", b"standfast.anchor.v2"),
        lambda content: b"[]\n" + content,
        lambda _: b"",
    ],
    ids=["changed", "cut", "newer", "another line", "empty"],
)
def test_a_forged_anchor_is_refused_in_one_line(
    anchored: Path, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    """An anchor that was changed, cut or written by a newer version is status 2."""
    path = tmp_path / "anchor.jsonl"
    path.write_bytes(change((anchored / "anchor.jsonl").read_bytes()))
    refused = standfast(
        "replay", "audit", "--db", anchored / "store.duckdb", "--anchor", path, "--json"
    )
    assert (refused.returncode, refused.stdout) == (2, b"")
    (line,) = refused.stderr.splitlines()
    assert str(path).encode() in line


def test_another_key_is_refused(anchored: Path, tmp_path: Path) -> None:
    """An anchor that somebody else has signed is status 2, and so is no key at all."""
    made = standfast(
        *("replay", "anchor", "--db", anchored / "store.duckdb", "--key", tmp_path / "key.pem"),
        *("--new-key", "--out", tmp_path / "anchor.jsonl", "--json"),
    )
    assert made.returncode == 0
    where = ("replay", "audit", "--db", anchored / "store.duckdb")
    for anchor, key in (
        (anchored / "anchor.jsonl", tmp_path / "key.pem.pub"),
        (anchored / "anchor.jsonl", tmp_path / "key.pem"),
    ):
        refused = standfast(*where, "--anchor", anchor, "--public-key", key)
        assert (refused.returncode, refused.stdout) == (2, b"")
        assert refused.stderr.count(b"\n") == 1
