"""An archive in a bucket: every command reads it, one writes it, and failures are one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from replay.audit.run import audit
from replay.bucket import Bucket
from replay.bucket_path import CACHE, BucketPath
from replay.errors import StoreBusyError, StoreError
from replay.opened import opened
from replay.parquet import export
from replay.segment_archive import SegmentArchive
from replay.segments_found import read_manifest
from replay.store import Store
from tests.audit.places import empty_place
from tests.audit.stores import archived, make_archive
from tests.audit.test_segments import assert_holds, go_on, one
from tests.cli.test_surroundings import is_one_line
from tests.kafka.s3_server import BUCKET, S3Server, environment
from tests.pipeline.test_shared_files import unused_port
from tests.replay.test_store import standfast
from tests.strategies_streams import seeded_stream

pytestmark = pytest.mark.kafka


@pytest.fixture
def bucket(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> BucketPath:
    """An archive in a bucket that is not there yet."""
    path = empty_place("bucket", request, tmp_path, monkeypatch)
    assert isinstance(path, BucketPath)
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive as one file."""
    path = tmp_path_factory.mktemp("file") / "archive.duckdb"
    make_archive(path, seeded_stream(3, 40))
    return path


def objects(bucket: BucketPath, s3: S3Server, table: str) -> list[Path]:
    """The files behind the segments of a table."""
    return sorted((s3.folder / bucket.prefix / table).rglob("*.parquet"))


def test_every_command_answers_as_from_a_file(bucket: BucketPath, file: Path) -> None:
    """What reads an archive says of a bucket what it says of the file that was exported there."""
    told = standfast("replay", "export", "--db", file, "--parquet", bucket, "--json")
    assert orjson.loads(told.stdout)["parquet"] == str(bucket)
    with Store(file, read_only=True) as store:
        tenant, conversation, _ = store.conversations()[0]
        told_of = store.conversation(tenant, conversation)
        assert told_of is not None
        record = min(told_of.state.records)
    about = ("--conversation", conversation, "--tenant", tenant)
    for command in (
        ("state", *about, "--json"),
        ("context", *about, "--turn", "3", "--json"),
        ("usage", "--json"),
        ("memory", "render", *about, "--json"),
        ("replay", "audit", "--json"),
        ("replay", "what-if", *about, "--retract", record, "--json"),
        ("replay", "diff", *about, "--turn", "1", "--turn", "3"),
        ("replay", "report", *about, "--out", str(file.with_name("page.html")), "--json"),
    ):
        ours, theirs = (standfast(*command, "--db", path) for path in (bucket, file))
        assert (ours.returncode, ours.stderr) == (theirs.returncode, b""), command
        assert ours.stdout.replace(str(bucket).encode(), str(file).encode()) == theirs.stdout
    assert standfast("replay", "diff", bucket, file).stdout == b"no difference\n"
    anchor = file.with_name("anchor.jsonl")
    key = ("--key", str(file.with_name("key.pem")), "--new-key")
    assert standfast("replay", "anchor", "--db", bucket, *key, "--out", anchor).returncode == 0
    assert standfast("replay", "audit", "--db", file, "--anchor", anchor).returncode == 0


def test_of_two_machines_the_newer_writer_goes_on(
    bucket: BucketPath, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older one is told when it publishes, and what it had put is nowhere."""
    whole = archived(seeded_stream(3, 40))
    older = SegmentArchive(bucket)
    go_on(older, whole, at_once=30, batches=2)
    monkeypatch.setenv(CACHE, str(tmp_path / "another machine"))
    with SegmentArchive(bucket) as newer:
        older.write(one(7))
        with pytest.raises(StoreBusyError, match="another process writes it"):
            older.publish()
        older.__exit__(StoreBusyError, None, None)
        go_on(newer, whole, at_once=30)
    assert_holds(bucket, file)


def test_who_reads_takes_nothing_from_who_writes(
    bucket: BucketPath, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is published while a reader waits for the manifest stays in the copy that they share."""
    whole = archived(seeded_stream(3, 40))
    asked = Bucket.manifest
    with SegmentArchive(bucket) as writer:
        go_on(writer, whole, at_once=30, batches=2)

        def overtaken(bucket: Bucket) -> bytes | None:
            found = asked(bucket)
            monkeypatch.setattr(Bucket, "manifest", asked)
            go_on(writer, whole, at_once=30)
            writer.publish()
            return found

        monkeypatch.setattr(Bucket, "manifest", overtaken)
        opened(bucket).close()
        assert writer.rows("SELECT count(*) FROM messages") == [(len(whole),)]
    assert_holds(bucket, file)


def test_what_was_changed_in_the_bucket_is_found(
    bucket: BucketPath, file: Path, s3: S3Server
) -> None:
    """The audit fetches everything again; who has no copy yet is refused what was changed."""
    export(file, bucket)
    assert audit(bucket) == audit(file)
    changed = objects(bucket, s3, "log")[0]
    whole = changed.read_bytes()
    changed.write_bytes(whole[:40] + bytes([whole[40] ^ 4]) + whole[41:])
    try:
        found = [each.where.table for each in audit(bucket).divergences]
    except StoreError:
        found = ["unreadable"]
    assert found
    shutil.rmtree(bucket.copy)
    with pytest.raises(StoreError, match=r"log/.*\.parquet: is not what was written"):
        opened(bucket)
    changed.write_bytes(whole)
    assert audit(bucket) == audit(file)
    changed.unlink()
    shutil.rmtree(bucket.copy)
    with pytest.raises(StoreError, match=r"log/.*\.parquet: is not there any more"):
        opened(bucket)


def test_a_copy_that_was_cut_short_is_fetched_again(bucket: BucketPath, file: Path) -> None:
    """A segment that is missing or short in the copy comes from the bucket, the others do not."""
    export(file, bucket)
    copied = [bucket.copy / each.path for each in read_manifest(bucket).segments]
    before = [path.stat().st_ino for path in copied]
    copied[0].write_bytes(b"")
    copied[1].unlink()
    (bucket.copy / "manifest.json").write_bytes(b"{")
    left = bucket.copy / ".fetching-0"
    left.write_bytes(b"of a process that was killed")
    opened(bucket).close()
    assert [path.stat().st_ino for path in copied] != before
    fetched = [path.stat().st_ino for path in copied]
    copied[0].write_bytes(b"")
    opened(bucket).close()
    assert [path.stat().st_ino for path in copied[1:]] == fetched[1:]
    assert audit(bucket) == audit(file)
    assert not left.exists()


def test_another_archive_of_the_same_name_is_not_the_one_before(
    bucket: BucketPath, file: Path, s3: S3Server, tmp_path: Path
) -> None:
    """Segments have the same names in it; the copy does not keep those of before."""
    export(file, bucket)
    opened(bucket).close()
    shutil.rmtree(s3.folder / bucket.prefix)
    make_archive(other := tmp_path / "other.duckdb", seeded_stream(4, 30))
    copy = bucket.copy.rename(tmp_path / "kept")
    export(other, bucket)
    shutil.rmtree(bucket.copy)
    copy.rename(bucket.copy)
    assert_holds(bucket, other)


@pytest.mark.parametrize("failure", ["away", "key", "bucket", "nothing"])
@pytest.mark.parametrize("command", ["read", "write"])
def test_a_bucket_that_cannot_be_used_is_one_line(
    bucket: BucketPath, file: Path, monkeypatch: pytest.MonkeyPatch, failure: str, command: str
) -> None:
    """Who reads or writes is told in one line which bucket it is and what is wrong."""
    named, told = str(bucket), "not an archive"
    if failure == "away":
        told = "the service does not answer"
        for name, value in environment(f"http://127.0.0.1:{unused_port()}").items():
            monkeypatch.setenv(name, value)
    elif failure == "key":
        told = "the service does not take these credentials"
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    elif failure == "bucket":
        named, told = named.replace(BUCKET, "no-such-bucket"), "there is no such bucket"
    elif command == "write":
        return  # it begins one
    if command == "read":
        ran = standfast("state", "--db", named, "--conversation", "c")
    else:
        ran = standfast("replay", "export", "--db", file, "--parquet", named)
    assert is_one_line(ran, named, told)


@pytest.mark.parametrize("url", ["s3://", "s3://B/c", "s3://bucket/a b", "s3://bucket\n"])
def test_a_url_that_names_no_bucket_is_one_line(url: str) -> None:
    """It is repeated, with what is expected."""
    assert is_one_line(standfast("usage", "--db", url), url.strip(), "s3://BUCKET/PREFIX")
    assert is_one_line(standfast("replay", "diff", url, url), url.strip(), "s3://BUCKET/PREFIX")


def test_wrapped_keys_do_not_lie_in_a_cache(
    bucket: BucketPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a key file, the folder of an archive's wrapped keys has to be named."""
    keys = tmp_path / "keys.jsonl"
    assert standfast("keys", "create", keys, "--id", "a").returncode == 0
    monkeypatch.setenv("STANDFAST_KEY_FILE", str(keys))
    ran = standfast("state", "--db", bucket, "--conversation", "c")
    assert is_one_line(ran, str(bucket), "STANDFAST_WRAPPED_KEYS")
    monkeypatch.setenv("STANDFAST_WRAPPED_KEYS", str(tmp_path / "wrapped"))
    make_archive(bucket, seeded_stream(3, 10), SegmentArchive)
    assert audit(bucket).divergences == []
    assert any((tmp_path / "wrapped").iterdir())
    cached = [path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert set(cached) <= {".parquet", ".json", ".lock", ""}
