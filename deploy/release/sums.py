"""Checksums of a folder of files, signed with an Ed25519 key, and the check of both.

    sums.py key FILE                           a new key, and FILE.pub to give away
    sums.py write FOLDER                       SHA256SUMS, as sha256sum writes it
    sums.py sign FOLDER --key FILE             SHA256SUMS.sig beside it, 64 bytes
    sums.py verify FOLDER --public-key FILE    the signature, then every file

The key is the kind that signs anchors. OpenSSL verifies the signature too: `openssl pkeyutl -verify
-pubin -inkey FILE -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig`.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from pathlib import Path

from cryptography.exceptions import InvalidSignature

from replay.anchor import new_key, private_key, public_key
from replay.errors import StoreError

SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
_LINE = re.compile(r"([0-9a-f]{64})  ([\w.+-]+)")


class SumsError(Exception):
    """A folder, list or signature that is not as it must be; one line that names the file."""


def main(arguments: list[str]) -> int:
    """Status 0, or 1 where something does not agree, 2 where it cannot be read."""
    parser = argparse.ArgumentParser(prog="sums.py", description="Checksums, signed.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("key").add_argument("file", type=Path)
    for name in ("write", "sign", "verify"):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path)
        if name == "sign":
            command.add_argument("--key", type=Path, required=True)
        if name == "verify":
            command.add_argument("--public-key", type=Path, required=True)
    asked = parser.parse_args(arguments)
    try:
        match asked.command:
            case "key":
                print(f"{new_key(asked.file)} is what others verify with")
            case "write":
                write(asked.folder)
            case "sign":
                sign(asked.folder, asked.key)
            case _:
                count = verify(asked.folder, asked.public_key)
                print(f"{count} files are those that the key has signed")
    except SumsError as wrong:
        print(wrong, file=sys.stderr)
        return 1
    except StoreError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    except OSError as wrong:
        print(f"{wrong.filename}: {wrong.strerror}", file=sys.stderr)
        return 2
    return 0


def write(folder: Path) -> None:
    """List every file but the list itself and its signature, by name."""
    (folder / SIGNATURE).unlink(missing_ok=True)
    lines = [f"{_digest(file)}  {file.name}\n" for file in _files(folder)]
    (folder / SUMS).write_text("".join(lines))


def sign(folder: Path, key: Path) -> None:
    """Sign the list as it is. Raises SumsError if a file is not what it says."""
    listed = (folder / SUMS).read_bytes()
    _compare(folder, listed)
    (folder / SIGNATURE).write_bytes(private_key(key).sign(listed))


def verify(folder: Path, key: Path) -> int:
    """Check the signature, then every file, and that there is no other; how many there are.

    Raises SumsError.
    """
    listed = (folder / SUMS).read_bytes()
    try:
        public_key(key).verify((folder / SIGNATURE).read_bytes(), listed)
    except InvalidSignature as wrong:
        raise SumsError(f"{folder / SIGNATURE}: not the signature of this key") from wrong
    return _compare(folder, listed)


def _compare(folder: Path, listed: bytes) -> int:
    lines = listed.decode(errors="replace").splitlines()
    digests: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise SumsError(f"{folder / SUMS}: line {number}: not a checksum and a name")
        digests[match[2]] = match[1]
    present = {file.name: file for file in _files(folder)}
    for name in sorted(digests.keys() ^ present.keys()):
        state = "is missing" if name in digests else "is not listed"
        raise SumsError(f"{folder / name}: {state}")
    for name, file in present.items():
        if _digest(file) != digests[name]:
            raise SumsError(f"{file}: not the file that was listed")
    return len(present)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.name not in (SUMS, SIGNATURE))


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
