"""The runs of `evaluate operations`, kept one by one, so that an interrupted evaluation goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias, final

from replay.errors import StoreError
from replay.evaluate.operations import LabelledTurn
from schemas.contract import Contract
from schemas.wire import WireError, canonical_bytes, decode_contract

RUNS_NAME = "runs.jsonl"

Subject: TypeAlias = dict[str, str | None]
"""What is measured: the interpreter, its model, and what shapes its answers."""


@final
class Run(Contract):
    """One pass over the scenarios under one prompt condition."""

    subject: Subject
    condition: str
    run: int
    items: tuple[LabelledTurn, ...]


def kept_runs(folder: Path, subject: Subject) -> list[Run]:
    """The runs that were finished before. Raises StoreError if they are of another subject.

    A last line that was cut short is a run that was not finished.
    """
    path = folder / RUNS_NAME
    if not path.exists():
        return []
    runs: list[Run] = []
    *whole, _cut = path.read_bytes().split(b"\n")
    for number, line in enumerate(whole, 1):
        try:
            run = decode_contract(Run, line)
        except WireError as invalid:
            raise StoreError(f"{path}:{number}: {invalid}") from invalid
        if run.subject != subject:
            names = sorted(subject.keys() | run.subject.keys())
            name = next(name for name in names if subject.get(name) != run.subject.get(name))
            raise StoreError(
                f"{path}:{number}: these runs have another {name}, {run.subject.get(name)!r} "
                f"instead of {subject.get(name)!r}; choose another --out"
            )
        runs.append(run)
    return runs


def keep_run(folder: Path, run: Run) -> None:
    """Add a finished run, in place of a last line that was cut short."""
    path = folder / RUNS_NAME
    with path.open("ab") as file:
        whole = path.read_bytes().rfind(b"\n") + 1
        file.truncate(whole)
        file.write(canonical_bytes(run) + b"\n")
