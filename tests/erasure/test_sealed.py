"""Sealing: what goes in comes out, and nothing opens anywhere else."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.app.temporary_file import TemporaryFile
from processor.vault.errors import (
    KeyDestroyedError,
    KeyFileError,
    KeysAwayError,
    SealedBytesError,
)
from processor.vault.key_folder import KeyFolder
from processor.vault.sealed import DataKey, Kind, as_text, from_text, is_sealed, random_secret
from processor.vault.tenant_keys import KeyFile, add_tenant_key
from processor.vault.vault import Vault
from tests.erasure.sites import CANARY

SECRET = random_secret()
KINDS = st.sampled_from(list(Kind))
ID = b"k" * 16


def vault(folder: Path, key_file: str = "keys", store: str = "store") -> Vault:
    """A vault with a key for everybody."""
    path = folder / key_file
    if not path.exists():
        add_tenant_key(path, "*", "first")
    return Vault(KeyFile(path), KeyFolder(folder / store))


@given(KINDS, st.binary(max_size=2_000))
def test_what_is_sealed_opens(kind: Kind, plain: bytes) -> None:
    """Any bytes of any kind come back as they were, from bytes that say that they are sealed."""
    key = DataKey("acme/c", ID, SECRET)
    sealed = key.seal(kind, plain)
    assert is_sealed(sealed)
    assert key.open(kind, sealed) == plain
    assert from_text(as_text(sealed)) == sealed


@given(KINDS, st.binary(max_size=200))
def test_sealing_is_deterministic(kind: Kind, plain: bytes) -> None:
    """The same thing sealed twice gives the same bytes, so sending again sends the same."""
    first, second = DataKey("acme/c", ID, SECRET), DataKey("acme/c", ID, SECRET)
    assert first.seal(kind, plain) == second.seal(kind, plain)


@given(KINDS, KINDS, st.binary(max_size=200), st.sampled_from(["acme/c", "acme/d", "other/c"]))
def test_nothing_opens_elsewhere(kind: Kind, asked: Kind, plain: bytes, owner: str) -> None:
    """The same key opens nothing as another kind, for another conversation or another tenant."""
    sealed = DataKey("acme/c", ID, SECRET).seal(kind, plain)
    elsewhere = DataKey(owner, ID, SECRET)
    if (asked, owner) == (kind, "acme/c"):
        assert elsewhere.open(asked, sealed) == plain
    else:
        with pytest.raises(SealedBytesError, match=owner):
            elsewhere.open(asked, sealed)


@given(st.binary(min_size=1, max_size=100), st.data())
def test_a_changed_byte_is_noticed(plain: bytes, data: st.DataObject) -> None:
    """Whichever byte of sealed bytes is changed, or how many are cut, they do not open."""
    key = DataKey("acme/c", ID, SECRET)
    sealed = bytearray(key.seal(Kind.EVENT, plain))
    place = data.draw(st.integers(0, len(sealed) - 1))
    sealed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SealedBytesError):
        key.open(Kind.EVENT, bytes(sealed))
    with pytest.raises(SealedBytesError):
        key.open(Kind.EVENT, key.seal(Kind.EVENT, plain)[:place])


def test_a_new_process_opens_what_another_sealed(tmp_path: Path) -> None:
    """Key file and folder are all that is needed, and another folder's keys are others."""
    sealed = vault(tmp_path).seal(Kind.EVENT, "acme", "c", b"said")
    assert vault(tmp_path).open(Kind.EVENT, "acme", "c", sealed) == b"said"
    with pytest.raises(KeysAwayError, match="acme/c"):
        vault(tmp_path, store="elsewhere").open(Kind.EVENT, "acme", "c", sealed)


def test_another_tenants_key_opens_nothing(tmp_path: Path) -> None:
    """A wrapped key does not unwrap with a key of the same name, nor with another tenant's."""
    add_tenant_key(tmp_path / "acme", "acme", "first")
    sealed = vault(tmp_path, "acme").seal(Kind.EVENT, "acme", "c", b"said")
    for file, tenant in (("foreign", "globex"), ("same", "acme")):
        add_tenant_key(tmp_path / file, tenant, "first")
        with pytest.raises(KeysAwayError, match=str(tmp_path / file)):
            vault(tmp_path, file).open(Kind.EVENT, "acme", "c", sealed)
    with pytest.raises(KeysAwayError, match="no key for tenant 'acme'"):
        vault(tmp_path, "foreign").seal(Kind.EVENT, "acme", "d", b"said")


def test_the_newest_key_wraps_and_all_unwrap(tmp_path: Path) -> None:
    """After a key is added, old data keys still open; wrapped anew, the old key is not needed."""
    sealed = vault(tmp_path).seal(Kind.EVENT, "acme", "c", b"said")
    add_tenant_key(tmp_path / "keys", "*", "second")
    assert vault(tmp_path).open(Kind.EVENT, "acme", "c", sealed) == b"said"
    folder = KeyFolder(tmp_path / "store")
    (old,) = folder.find("acme/c")
    new = vault(tmp_path).rewrapped(old)
    assert new is not None
    assert (old.tenant_key, new.tenant_key) == ("first", "second")
    folder.replace(new)
    assert vault(tmp_path).rewrapped(new) is None
    lines = (tmp_path / "keys").read_text().splitlines()
    (tmp_path / "keys").write_text(lines[1] + "\n")
    assert vault(tmp_path).open(Kind.EVENT, "acme", "c", sealed) == b"said"


def test_what_is_destroyed_is_closed(tmp_path: Path) -> None:
    """With the key destroyed nothing opens, not even where it was held, and nothing is sealed."""
    held = vault(tmp_path)
    sealed = held.seal(Kind.EVENT, "acme", "c", b"said")
    near = held.seal(Kind.EVENT, "acme", "d", b"near")
    assert KeyFolder(tmp_path / "store").destroy("acme", "c")
    assert not KeyFolder(tmp_path / "store").destroy("acme", "c")
    for each in (held, vault(tmp_path)):
        with pytest.raises(KeyDestroyedError):
            each.open(Kind.EVENT, "acme", "c", sealed)
        with pytest.raises(KeyDestroyedError):
            each.seal(Kind.EVENT, "acme", "c", b"more")
        assert each.open(Kind.EVENT, "acme", "d", near) == b"near"
    assert not list((tmp_path / "store" / "keys").rglob("c"))


BAD_FILES = {
    "": ": has no key",
    "{}\n": ":1: id: Field required",
    '{"id": "a", "tenant": "*", "key": "' + "A" * 42 + '=="}\n': ":1: key: not 32 bytes in base64",
    '{"id": "a", "tenant": "*", "key": "' + "!" * 44 + '"}\n': ":1: key: no base64",
}


@pytest.mark.parametrize("content", BAD_FILES)
def test_a_bad_key_file_is_named(tmp_path: Path, content: str) -> None:
    """What is wrong with a key file is said with its line and field, and without its secrets."""
    path = tmp_path / "keys"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(KeyFileError) as refused:
        KeyFile(path).check()
    assert str(refused.value) == f"{path}{BAD_FILES[content]}"


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o602], ids=oct)
def test_a_key_file_for_others_is_refused(tmp_path: Path, mode: int) -> None:
    """Its group may read it and no more, and others may do nothing; a missing one is away."""
    add_tenant_key(tmp_path / "keys", "*", "first")
    assert os.stat(tmp_path / "keys").st_mode & 0o777 == 0o600
    (tmp_path / "keys").chmod(mode)
    with pytest.raises(KeyFileError, match="others may read or change it; chmod 600"):
        KeyFile(tmp_path / "keys").check()
    (tmp_path / "keys").chmod(0o440)
    KeyFile(tmp_path / "keys").check()
    with pytest.raises(KeysAwayError, match="cannot be read"):
        KeyFile(tmp_path / "none").check()
    with pytest.raises(KeyFileError, match=": is no file"):
        KeyFile(tmp_path).check()


def test_temporary_files_hold_nothing_legible() -> None:
    """What leaves memory for a temporary file is encrypted there, and comes back."""
    file = TemporaryFile()
    said = (CANARY * 1_000).encode()
    for number in range(1_000):  # beyond what SQLite keeps in memory
        file.put(f"acme/{number}", said)
    assert file.get("acme/0") == said
    written = [
        handle.read_bytes()
        for handle in Path("/proc/self/fd").iterdir()
        if handle.exists() and "(deleted)" in os.readlink(handle)
    ]
    assert sum(map(len, written)) > 4_000_000
    assert not any(CANARY.encode() in content for content in written)


def test_a_key_file_that_cannot_be_written_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is told with the file, and costs no key that was there."""
    path = tmp_path / "keys"
    add_tenant_key(path, "*", "first")
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeyFileError, match=f"{path}: cannot be written: No space left"):
        add_tenant_key(path, "*", "second")
    assert [each.name for each in tmp_path.iterdir()] == ["keys"]
    assert path.read_bytes() == before
