"""One loop for every benchmark: each item under each arm, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from processor.interpreter.port import Interpreter
from replay.evaluate.asking import QaModel, Said
from replay.evaluate.benchmark import END_TO_END, Item, Scores, Workload
from replay.evaluate.measurements import Measurement, Measurements

PORTION = 200
"""How many measurements are written at once; what is asked of a model is written one by one."""


def data_digest(path: Path | None) -> str | None:
    """SHA-256 (hex) of the data: of a folder, of its files in the order of their names."""
    if path is None:
        return None
    if not path.is_dir():
        return sha256(path.read_bytes()).hexdigest()
    whole = sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        whole.update(file.relative_to(path).as_posix().encode() + b"\0")
        whole.update(sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def measure_all(
    workload: Workload,
    items: Sequence[Item],
    arms: Sequence[str],
    kept: Measurements,
    step: Callable[[], None],
) -> list[Measurement]:
    """Every item under every arm without a model; what was measured before is not done again."""
    waiting: list[Measurement] = []
    for item in items:
        for arm in arms:
            if kept.get(item.id, arm) is None:
                scores = workload.measure(item, arm)
                waiting.append(Measurement(item=item.id, group=item.group, arm=arm, scores=scores))
            step()
        if len(waiting) >= PORTION:
            kept.keep(waiting)
            waiting = []
    kept.keep(waiting)
    return _in_order(items, arms, kept)


async def ask_all(
    workload: Workload,
    items: Sequence[Item],
    arms: Sequence[str],
    kept: Measurements,
    step: Callable[[], None],
    model: QaModel,
    interpreter: Interpreter | None,
) -> list[Measurement]:
    """The same with a model; a failure is counted and has no grade.

    Raises EndpointUnavailable and BenchmarkError.
    """
    for arm in arms:
        missing = [item for item in items if kept.get(item.id, arm) is None]
        written: dict[str, float] = {}
        if arm == END_TO_END and missing:
            assert interpreter is not None, "the arm reads text"
            written = await workload.interpret(interpreter, missing)
        for item in missing:
            answer = await model.answer(workload.question(item, arm))
            kept.keep([_measured(workload, item, arm, answer, written)])
            step()
    return _in_order(items, arms, kept)


def _measured(workload: Workload, item: Item, arm: str, said: Said, written: Scores) -> Measurement:
    grade = workload.grade(item, said.text) if said.failure is None else {}
    return Measurement(
        item=item.id,
        group=item.group,
        arm=arm,
        scores={
            **grade,
            "failed": float(said.failure is not None),
            "tokens_in": said.tokens_in,
            "tokens_out": said.tokens_out,
            **written,
        },
        answer=said.text,
        failure=said.failure,
    )


def _in_order(items: Sequence[Item], arms: Sequence[str], kept: Measurements) -> list[Measurement]:
    assert len(dict.fromkeys(item.id for item in items)) == len(items), "items have names"
    found = [kept.get(item.id, arm) for item in items for arm in arms]
    return [measurement for measurement in found if measurement is not None]
