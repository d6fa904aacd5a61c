"""Erasure from the store of a run: nothing of it can be read, its neighbour is as it was."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import orjson
import pytest

from tests.erasure.sites import CANARY, found_in, standfast, statement, told
from tests.kafka.software import ROOT

NEAR = "harmless"
STORE = "standfast.duckdb"


@dataclass
class Site:
    """A sealed store, made by one run, and a store of the same input that is not sealed."""

    folder: Path

    @property
    def key_file(self) -> Path:
        """The keys of tenants."""
        return self.folder / "tenant-keys"

    @property
    def sealed(self) -> Path:
        """Where the sealed run keeps everything."""
        return self.folder / "sealed"

    def with_keys(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a command with the key file."""
        return standfast(*arguments, "--key-file", self.key_file)

    def state(self, out: Path, conversation: str, *options: object) -> str:
        """What `state --json` says."""
        db = ("--db", out / STORE, "--tenant", "acme", "--conversation", conversation)
        done = standfast("state", *db, "--json", *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def copy(self, folder: Path) -> Site:
        """The same site elsewhere, for a test that changes it."""
        shutil.copytree(self.folder, folder / "site")
        return Site(folder / "site")

    def erase(self) -> subprocess.CompletedProcess[str]:
        """Erase the conversation with the canary."""
        named = ("--tenant", "acme", "--conversation", "told")
        return self.with_keys("erase", "--out", self.sealed, *named)


def write_lines(path: Path, *lines: object) -> Path:
    """A file of JSON lines."""
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Two conversations, run with and without a key file."""
    made = Site(tmp_path_factory.mktemp("erasure"))
    assert standfast("keys", "create", made.key_file, "--id", "k1").returncode == 0
    inputs = made.folder / "inputs"
    inputs.mkdir()
    said = write_lines(inputs / "in.jsonl", *told("told", CANARY), *told("near", NEAR))
    plain = standfast("run", said, "--out", made.folder / "plain", "--json")
    sealed = made.with_keys("run", said, "--out", made.sealed, "--json")
    assert (plain.returncode, sealed.returncode) == (2, 2), sealed.stderr  # ids that were used
    assert plain.stdout == sealed.stdout
    return made


def test_nothing_that_is_kept_is_legible(site: Site) -> None:
    """Before any erasure the sealed run has the canary nowhere, and the other one has it."""
    kept = found_in(CANARY, site.folder / "plain")
    assert [Path(path).name for path in kept] == ["dead-letters.jsonl", STORE]
    assert found_in(CANARY, site.sealed) == []
    assert found_in(NEAR, site.sealed) == []


def test_sealing_changes_no_answer(site: Site) -> None:
    """States and digests are those of the run without keys, and the audit finds no divergence."""
    keys = ("--key-file", site.key_file)
    for conversation in ("told", "near"):
        plain = site.state(site.folder / "plain", conversation)
        assert site.state(site.sealed, conversation, *keys) == plain
    audit = site.with_keys("replay", "audit", "--db", site.sealed / STORE)
    assert (audit.returncode, "no divergence" in audit.stdout) == (0, True), audit.stdout


def test_without_the_key_file_one_line_says_so(site: Site) -> None:
    """A sealed store without keys, and with a key file that is away, is status 2 and one line."""
    db = ("--db", site.sealed / STORE, "--tenant", "acme", "--conversation", "near")
    none = standfast("state", *db)
    assert none.returncode == 2
    assert none.stderr.endswith("is sealed; name its key file: --key-file, or STANDFAST_KEY_FILE\n")
    away = standfast("state", *db, "--key-file", site.folder / "away")
    assert (away.returncode, away.stderr.count("\n")) == (2, 1)
    assert "away: cannot be read: No such file or directory" in away.stderr
    run = standfast("run", site.folder / "inputs" / "in.jsonl", "--out", site.sealed)
    assert (run.returncode, "is sealed" in run.stderr) == (2, True)


def test_outcomes_can_be_asked_for_without_keys(site: Site) -> None:
    """Ids, turns and outcomes stand in the clear, as plain DuckDB sees them."""
    with duckdb.connect(str(site.sealed / STORE), read_only=True) as connection:
        rows = connection.execute(
            "SELECT outcome, count(*) FROM verdicts WHERE conversation_id = 'near' GROUP BY ALL"
        ).fetchall()
        digests = connection.execute("SELECT digest FROM log").fetchall()
    assert dict(rows)["ungrounded"] > 0
    assert all(digest.startswith("sealed:") for (digest,) in digests)


def test_an_erased_conversation_is_gone(site: Site, tmp_path: Path) -> None:
    """It is unknown, its id is closed, its neighbour is as it was, and the audit says so."""
    mine = site.copy(tmp_path)
    keys = ("--key-file", mine.key_file)
    before = mine.state(mine.sealed, "near", *keys)
    assert mine.erase().returncode == 0
    asked = mine.with_keys(
        "state", "--db", mine.sealed / STORE, "--tenant", "acme", "--conversation", "told"
    )
    assert (asked.returncode, "has no conversation 'told'" in asked.stderr) == (2, True)
    assert mine.state(mine.sealed, "near", *keys) == before
    assert mine.state(mine.folder / "plain", "near") == before
    audit = mine.with_keys("replay", "audit", "--db", mine.sealed / STORE)
    assert audit.returncode == 0, audit.stdout
    assert "acme/told was erased: the chain of its 14 events was checked" in audit.stdout
    later = write_lines(mine.folder / "later.jsonl", statement("told", 60, CANARY))
    more = mine.with_keys("run", later, "--out", mine.sealed)
    assert (more.returncode, "its id is closed" in more.stderr) == (2, True)
    letter = orjson.loads((mine.sealed / "dead-letters.jsonl").read_bytes().splitlines()[-1])
    assert (letter["class"], letter["sha256"]) == ("erased", None)
    assert found_in(CANARY, mine.sealed) == []
    assert not list((mine.sealed / f"{STORE}.keys" / "keys").rglob("told"))


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from processor.app import erasure
class Store:
    def __init__(self, path): os.kill(os.getpid(), signal.SIGKILL)
erasure.Store = Store
erasure.erase_in_store(Path(sys.argv[1]), "acme", "told", datetime.now(UTC))
"""


def test_an_erasure_that_was_cut_short_is_completed(site: Site, tmp_path: Path) -> None:
    """Killed between the key and the event, nothing is legible; asked again, it is completed."""
    mine = site.copy(tmp_path)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(mine.sealed / STORE)],
        cwd=ROOT,
        env={**os.environ, "STANDFAST_KEY_FILE": str(mine.key_file)},
        check=False,
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL
    half = mine.with_keys("replay", "audit", "--db", mine.sealed / STORE)
    assert (half.returncode, "its log does not say so: erase it again" in half.stdout) == (0, True)
    assert mine.erase().returncode == 0
    once = mine.with_keys("replay", "audit", "--db", mine.sealed / STORE)
    assert (once.returncode, "checked, not what they said\n" in once.stdout) == (0, True)
    assert mine.erase().returncode == 0
    with duckdb.connect(str(mine.sealed / STORE), read_only=True) as connection:
        ends = "SELECT count(*) FROM log WHERE type = 'standfast.conversation_erased.v1'"
        assert connection.execute(ends).fetchall() == [(1,)]


def test_a_row_that_was_moved_is_located(site: Site, tmp_path: Path) -> None:
    """Sealed bytes of one conversation in a row of another are a divergence there."""
    mine = site.copy(tmp_path)
    with duckdb.connect(str(mine.sealed / STORE)) as connection:
        connection.execute(
            "UPDATE log SET event = moved.event, record_hash = moved.record_hash FROM "
            "(SELECT event, record_hash FROM log WHERE conversation_id = 'told' AND sequence = 3) "
            "moved WHERE conversation_id = 'near' AND sequence = 5"
        )
    audit = mine.with_keys("replay", "audit", "--db", mine.sealed / STORE)
    assert audit.returncode == 1
    assert "acme/near" in audit.stdout
    assert "sequence 5" in audit.stdout


def test_an_exported_archive_is_sealed_too(site: Site, tmp_path: Path) -> None:
    """Parquet segments hold ciphertext, are read with the keys, and forget what is erased."""
    mine = site.copy(tmp_path)
    parquet = mine.folder / "parquet"
    export = ("replay", "export", "--db", mine.sealed / STORE, "--parquet", parquet)
    assert standfast(*export).returncode == 0
    assert found_in(CANARY, parquet) == []
    assert found_in(NEAR, parquet) == []
    keys = {
        "STANDFAST_KEY_FILE": str(mine.key_file),
        "STANDFAST_WRAPPED_KEYS": str(mine.sealed / f"{STORE}.keys"),
    }
    assert standfast("replay", "audit", "--db", parquet, **keys).returncode == 0
    assert mine.erase().returncode == 0
    assert standfast(*export).returncode == 0
    audit = standfast("replay", "audit", "--db", parquet, **keys)
    assert (audit.returncode, "acme/told was erased" in audit.stdout) == (0, True), audit.stdout


def test_what_is_older_than_its_tenant_keeps_it_is_erased(site: Site, tmp_path: Path) -> None:
    """`erase --due` erases the conversations of tenants with an age, and no others."""
    mine = site.copy(tmp_path)
    for_ever = write_lines(mine.folder / "for-ever", {"tenant": "acme"})
    a_day = write_lines(mine.folder / "a-day", {"tenant": "acme", "keep_days": 1})
    due = ("erase", "--due", "--json", "--out", mine.sealed, "--tenants")
    assert orjson.loads(mine.with_keys(*due, for_ever).stdout) == {"erased": []}
    erased = orjson.loads(mine.with_keys(*due, a_day).stdout)["erased"]
    assert [each["conversation_id"] for each in erased] == ["near", "told"]
    assert orjson.loads(mine.with_keys(*due, a_day).stdout) == {"erased": []}


def test_what_was_kept_in_the_clear_is_not_called_erased(site: Site, tmp_path: Path) -> None:
    """A store without keys refuses an erasure, and a run with keys refuses that store."""
    mine = site.copy(tmp_path)
    plain = mine.folder / "plain"
    named = ("--tenant", "acme", "--conversation", "told")
    refused = mine.with_keys("erase", "--out", plain, *named)
    assert (refused.returncode, "in the clear; nothing erases that" in refused.stderr) == (2, True)
    run = mine.with_keys("run", mine.folder / "inputs" / "in.jsonl", "--out", plain)
    assert (run.returncode, "was begun without a key file" in run.stderr) == (2, True)


def test_a_sealed_history_is_read_again_sealed(site: Site, tmp_path: Path) -> None:
    """The new history opens with the keys beside it; without a key file nothing is written."""
    said = site.folder / "inputs" / "in.jsonl"
    again = ("replay", "reinterpret", "--db", site.sealed / STORE, "--input", said, "--out")
    refused = standfast(*again, tmp_path / "clear")
    assert (refused.returncode, "is sealed; name its key file" in refused.stderr) == (2, True)
    assert not (tmp_path / "clear").exists()
    done = site.with_keys(*again, tmp_path / "again")
    assert (done.returncode, done.stdout.count("F1 1.000, exact 1.000")) == (0, 2), done.stderr
    keys = ("--key-file", site.key_file)
    first = site.state(site.sealed, "near", *keys)
    assert site.state(tmp_path / "again", "near", *keys) == first
    assert found_in(CANARY, tmp_path) == []


def test_what_is_not_where_keys_are_is_refused(site: Site, tmp_path: Path) -> None:
    """No key is called rewrapped where none is; segments are erased where they come from."""
    none = site.with_keys("keys", "rewrap", "--db", tmp_path / "none")
    assert (none.returncode, f"{tmp_path / 'none'}: no such file" in none.stderr) == (2, True)
    named = ("--tenant", "acme", "--conversation", "told")
    folder = site.with_keys("erase", "--db", tmp_path, *named)
    assert (folder.returncode, "is a folder of segments" in folder.stderr) == (2, True)


def test_keys_are_wrapped_anew_only_where_some_are(site: Site, tmp_path: Path) -> None:
    """Else older keys would be taken away in the belief that nothing needs them."""
    nothing = tmp_path / "nothing.duckdb"
    other = tmp_path / "other.duckdb"
    other.write_bytes(b"")
    for path, named in ((nothing, f"{nothing}: no such file"), (other, f"{other}.keys: no such")):
        refused = site.with_keys("keys", "rewrap", "--db", path)
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"standfast: {named}")
        assert refused.stderr.count("\n") == 1
    away = standfast("keys", "rewrap", "--db", site.sealed, "--key-file", tmp_path / "away")
    assert away.returncode == 2
    assert f"{tmp_path / 'away'}: cannot be read" in away.stderr


def test_erasing_on_brokers_names_what_is_no_archive(site: Site, tmp_path: Path) -> None:
    """One line, before a broker is asked, and no folder of keys comes into being beside it."""
    text, folder = tmp_path / "letter.txt", tmp_path / "folder"
    text.write_text("not a store")
    folder.mkdir()
    mine = site.copy(tmp_path)
    shutil.move(mine.sealed / STORE, tmp_path / "run.duckdb")
    before = sorted(tmp_path.iterdir())
    for path, problem in (
        (text, "not a standfast store"),
        (folder, "not an archive: it has no manifest.json"),
        (
            tmp_path / "run.duckdb",
            "is no archive of brokers; erase from a run's without --bootstrap",
        ),
    ):
        to = ("--bootstrap", "127.0.0.1:1", "--conversation", "told", "--db", path)
        refused = mine.with_keys("erase", *to)
        assert (refused.returncode, refused.stderr) == (2, f"standfast: {path}: {problem}\n")
    assert sorted(tmp_path.iterdir()) == before
