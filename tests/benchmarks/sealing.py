"""What sealing costs for each event: `python -m tests.benchmarks.sealing`.

The same utterances go through the whole pipeline of one process into a store, several times each
way, in turn; then each store is audited. The best of each is told, since a busy machine only
ever adds.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from processor.vault.key_folder import KeyFolder
from processor.vault.sealed import DataKey, Kind, random_secret
from processor.vault.tenant_keys import add_tenant_key
from replay.audit.run import audit
from replay.sealing import KEY_FILE
from tests.benchmarks.replay import TURNS_EACH, make, timed

ROUNDS = 3


def one_way(folder: Path, name: str, key_file: Path | None, turns: int) -> tuple[float, float, int]:
    """Seconds to write and to audit a store of so many turns, and its bytes."""
    os.environ.pop(KEY_FILE, None)
    if key_file is not None:
        os.environ[KEY_FILE] = str(key_file)
    path = folder / f"{name}.duckdb"
    _, written = timed(lambda: make(path, turns // TURNS_EACH, TURNS_EACH))
    report, audited = timed(lambda: audit(path, jobs=1))
    assert not report.divergences
    return written, audited, path.stat().st_size


def primitives() -> None:
    """One event of a kilobyte and a half, sealed and opened; one new conversation's key file."""
    key, plain = DataKey("acme/c", b"k" * 16, random_secret()), os.urandom(1_500)
    sealed = key.seal(Kind.EVENT, plain)
    for what, call in (
        ("seal", lambda: key.seal(Kind.EVENT, plain)),
        ("open", lambda: key.open(Kind.EVENT, sealed)),
    ):
        _, seconds = timed(lambda call=call: [call() for _ in range(10_000)])
        print(f"{what} 1,500 bytes: {seconds * 100:.1f} us")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=4_000)
    turns = parser.parse_args().turns
    primitives()
    figures: dict[str, list[tuple[float, float, int]]] = {"clear": [], "sealed": []}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        add_tenant_key(folder / "keys", "*", "bench")
        for number in range(ROUNDS):
            for name, key_file in (("clear", None), ("sealed", folder / "keys")):
                told = one_way(folder, f"{name}-{number}", key_file, turns)
                figures[name].append(told)
        keys = len(list(KeyFolder(folder / "sealed-0.duckdb.keys").every()))
    print(f"{turns:,} turns in {keys} conversations, best of {ROUNDS}, in turn")
    for name, told in figures.items():
        written, audited, size = (min(column) for column in zip(*told, strict=True))
        print(
            f"{name:>8} write {written / turns * 1e6:6.0f} us/event, audit "
            f"{audited / turns * 1e6:6.0f} us/event, {size / turns:6.0f} bytes/event"
        )


if __name__ == "__main__":
    main()
