"""Signed checksums: what is verified, and everything that is not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.release.commands import release


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two keys."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "others"):
        assert release("sums", "key", folder / name).returncode == 0
    return folder


@pytest.fixture
def signed(tmp_path: Path, keys: Path) -> Path:
    """A folder with two files, their checksums, and the signature."""
    folder = tmp_path / "dist"
    folder.mkdir()
    (folder / "a.whl").write_bytes(b"wheel")
    (folder / "b.tar.gz").write_bytes(b"source")
    assert release("sums", "write", folder).returncode == 0
    assert release("sums", "sign", folder, "--key", keys / "ours").returncode == 0
    return folder


def verify(folder: Path, key: Path) -> tuple[int, str]:
    """The status and what is said."""
    done = release("sums", "verify", folder, "--public-key", key)
    return done.returncode, done.stdout + done.stderr


def test_what_was_signed_is_verified(signed: Path, keys: Path) -> None:
    """With the public half of the key, which is not the file that signs."""
    assert verify(signed, keys / "ours.pub") == (
        0,
        "2 files are those that the key has signed\n",
    )
    assert (keys / "ours").stat().st_mode & 0o077 == 0


def test_the_usual_program_verifies_the_files_too(signed: Path) -> None:
    """Nobody needs ours: sha256sum reads the list."""
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=signed, check=True
    )
    assert done.returncode == 0


@pytest.mark.openssl
def test_openssl_verifies_the_signature_too(signed: Path, keys: Path) -> None:
    """Nor for the list, whose signature is an ordinary one."""
    names = ["-in", "SHA256SUMS", "-sigfile", "SHA256SUMS.sig"]
    asked = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", keys / "ours.pub", "-rawin"]
    subprocess.run([*asked, *names], cwd=signed, check=True, capture_output=True)


def _change(folder: Path) -> None:
    (folder / "a.whl").write_bytes(b"another")


def _remove(folder: Path) -> None:
    (folder / "a.whl").unlink()


def _add(folder: Path) -> None:
    (folder / "c.whl").touch()


def _relist(folder: Path) -> None:
    _change(folder)
    signature = (folder / "SHA256SUMS.sig").read_bytes()
    assert release("sums", "write", folder).returncode == 0
    (folder / "SHA256SUMS.sig").write_bytes(signature)


@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (_change, "a.whl: not the file that was listed\n"),
        (_remove, "a.whl: is missing\n"),
        (_add, "c.whl: is not listed\n"),
        (_relist, "SHA256SUMS.sig: not the signature of this key\n"),
    ],
)
def test_what_was_altered_afterwards_is_named(
    signed: Path, keys: Path, alter: Callable[[Path], None], said: str
) -> None:
    """A changed, missing or added file, and a list that was made anew."""
    alter(signed)
    assert verify(signed, keys / "ours.pub") == (1, f"{signed}/{said}")


def test_another_key_has_not_signed_it(signed: Path, keys: Path) -> None:
    """It is the caller who says whose signature it must be."""
    status, said = verify(signed, keys / "others.pub")
    assert (status, said) == (1, f"{signed}/SHA256SUMS.sig: not the signature of this key\n")


def test_a_list_that_does_not_fit_its_files_is_not_signed(signed: Path, keys: Path) -> None:
    """A signature says that somebody looked."""
    _change(signed)
    refused = release("sums", "sign", signed, "--key", keys / "ours")
    assert refused.returncode == 1
    assert "a.whl: not the file that was listed" in refused.stderr


@pytest.mark.parametrize("missing", ["SHA256SUMS", "SHA256SUMS.sig"])
def test_what_is_not_there_is_named(signed: Path, keys: Path, missing: str) -> None:
    """Status 2: nothing could be compared."""
    (signed / missing).unlink()
    status, said = verify(signed, keys / "ours.pub")
    assert (status, said) == (2, f"{signed / missing}: No such file or directory\n")


def test_a_key_that_is_none_is_named(signed: Path, tmp_path: Path) -> None:
    """One line, without what stands in the file."""
    (tmp_path / "key").write_text("secret")
    refused = release("sums", "sign", signed, "--key", tmp_path / "key")
    assert refused.returncode == 2
    assert refused.stderr == f"{tmp_path / 'key'}: not an unencrypted private key in PEM\n"
