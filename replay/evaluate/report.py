"""The results of a benchmark: every item as JSON, and tables to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, final

from replay.evaluate.benchmark import Benchmark, Contrast, Scores, Workload
from replay.evaluate.measurements import Measurement, Subject
from replay.evaluate.statistics import Interval, Paired, holm, interval, paired

ALL = ""
"""The group of a row over all items."""


@final
class Row(NamedTuple):
    """One measure of one arm, over the items of one group or over all of them."""

    arm: str
    group: str
    measure: str
    items: int
    figure: Interval


@final
class Compared(NamedTuple):
    """A contrast over one group, with its permutation test adjusted by Holm within the table."""

    contrast: Contrast
    group: str
    paired: Paired
    holm_p: float


@final
class Report(NamedTuple):
    """Everything that was measured, and what follows from it."""

    benchmark: Benchmark
    subject: Subject
    rows: tuple[Row, ...]
    compared: tuple[Compared, ...]
    notes: tuple[str, ...]
    measurements: Sequence[Measurement]


def report(
    benchmark: Benchmark,
    workload: Workload,
    subject: Subject,
    measurements: Sequence[Measurement],
    beside: Sequence[str] = (),
) -> Report:
    """Sum up the measurements; `beside` are notes of whoever made them."""
    seed = int(subject["seed"] or 0)
    measurements = _completed(workload, measurements)
    scored = _by_item_and_arm(measurements)
    return Report(
        benchmark,
        subject,
        tuple(_rows(measurements, seed)),
        tuple(_compared(benchmark.contrasts, measurements, seed)),
        (*workload.notes(scored), *_failures(measurements), *beside),
        measurements,
    )


def _completed(workload: Workload, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
    more = workload.complete(_by_item_and_arm(measurements))
    return [
        each.model_copy(update={"scores": each.scores | more.get((each.item, each.arm), {})})
        for each in measurements
    ]


def _failures(measurements: Sequence[Measurement]) -> Iterable[str]:
    """Of each arm how many questions have no answer, and why."""
    for arm in dict.fromkeys(measurement.arm for measurement in measurements):
        of_arm = [measurement for measurement in measurements if measurement.arm == arm]
        found = Counter(each.failure for each in of_arm if each.failure is not None)
        if found:
            why = ", ".join(f"{count} {failure}" for failure, count in sorted(found.items()))
            yield (
                f"{arm}: {found.total()} of {len(of_arm)} questions failed ({why}); they are "
                "neither right nor wrong"
            )


def _by_item_and_arm(measurements: Sequence[Measurement]) -> Mapping[tuple[str, str], Scores]:
    return {(each.item, each.arm): each.scores for each in measurements}


def results(made: Report) -> dict[str, object]:
    """All of it as it goes into `results.json`."""
    return {
        "benchmark": made.benchmark.name,
        "subject": made.subject,
        "summary": [{**row._asdict(), "figure": row.figure._asdict()} for row in made.rows],
        "contrasts": [
            {
                **each.contrast._asdict(),
                "group": each.group,
                **each.paired._asdict(),
                "difference": each.paired.difference._asdict(),
                "holm_p": each.holm_p,
            }
            for each in made.compared
        ],
        "notes": list(made.notes),
        "published": made.benchmark.published,
        "items": list(made.measurements),
    }


def tables(made: Report) -> str:
    """The summary in Markdown."""
    who = made.subject.get("model") or "no model"
    lines = [f"{made.benchmark.about} Read by: {who}.", ""]
    lines += _summary(made)
    if made.compared:
        lines += ["", *_contrasts(made.compared)]
    if made.notes:
        lines += ["", *(f"- {note}" for note in made.notes)]
    return "\n".join([*lines, "", f"Published beside these: {made.benchmark.published}", ""])


def _summary(made: Report) -> Iterable[str]:
    measures = tuple(dict.fromkeys(row.measure for row in made.rows))
    cells: dict[tuple[str, str], dict[str, Row]] = {}
    for row in made.rows:
        cells.setdefault((row.group, row.arm), {})[row.measure] = row
    groups = made.benchmark.axis or "group"
    yield f"| {groups} | arm | items | {' | '.join(each.replace('_', ' ') for each in measures)} |"
    yield "|" + "---|" * (3 + len(measures))
    for (group, arm), found in cells.items():
        items = max(row.items for row in found.values())
        shown = [_cell(found.get(measure), items) for measure in measures]
        yield f"| {group or 'all'} | {arm} | {items:,} | {' | '.join(shown)} |"


def _cell(row: Row | None, items: int) -> str:
    if row is None:
        return ""
    mean, low, high = row.figure
    shown = _figure(mean) if low == high else f"{_figure(mean)} [{_figure(low)}, {_figure(high)}]"
    return shown if row.items == items else f"{shown} of {row.items:,}"


def _figure(figure: float) -> str:
    if figure == int(figure) and abs(figure) >= 10:
        return f"{int(figure):,}"
    return f"{figure:,.3f}" if abs(figure) < 10 else f"{figure:,.1f}"


def _contrasts(compared: Sequence[Compared]) -> Iterable[str]:
    yield (
        "| contrast | group | measure | pairs | difference | McNemar p | permutation p "
        "| Wilcoxon p | Holm p |"
    )
    yield "|" + "---|" * 9
    for each in compared:
        contrast, tested = each.contrast, each.paired
        mean, low, high = tested.difference
        mcnemar = "" if tested.mcnemar_p is None else f"{tested.mcnemar_p:.2g}"
        yield (
            f"| {contrast.name}: {contrast.arm} - {contrast.against} | {each.group or 'all'} "
            f"| {contrast.measure.replace('_', ' ')} | {tested.pairs:,} "
            f"| {mean:+.3f} [{low:+.3f}, {high:+.3f}] | {mcnemar} | {tested.permutation_p:.2g} "
            f"| {tested.wilcoxon_p:.2g} | {each.holm_p:.2g} |"
        )


def _rows(measurements: Sequence[Measurement], seed: int) -> Iterable[Row]:
    arms = tuple(dict.fromkeys(measurement.arm for measurement in measurements))
    for group in _groups(measurements):
        for arm in arms:
            figures: dict[str, list[float]] = {}
            for measurement in measurements:
                if measurement.arm == arm and group in (ALL, measurement.group):
                    for measure, figure in measurement.scores.items():
                        figures.setdefault(measure, []).append(figure)
            for measure, found in sorted(figures.items()):
                yield Row(arm, group, measure, len(found), interval(found, seed))


def _groups(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """The groups in the order of the items, then all together if there are several."""
    groups = tuple(dict.fromkeys(measurement.group for measurement in measurements))
    return (*groups, ALL) if len(groups) > 1 else groups


def _compared(
    contrasts: Sequence[Contrast], measurements: Sequence[Measurement], seed: int
) -> Iterable[Compared]:
    tested: list[tuple[Contrast, str, Paired]] = []
    for contrast in contrasts:
        for group in _groups(measurements):
            sides = _sides(contrast, group, measurements)
            if sides[0]:
                tested.append((contrast, group, paired(*sides, seed)))
    adjusted = holm([each.permutation_p for _, _, each in tested])
    for (contrast, group, each), holm_p in zip(tested, adjusted, strict=True):
        yield Compared(contrast, group, each, holm_p)


def _sides(
    contrast: Contrast, group: str, measurements: Sequence[Measurement]
) -> tuple[list[float], list[float]]:
    """The figures of both arms on the items that both have."""
    found: dict[str, dict[str, float]] = {contrast.arm: {}, contrast.against: {}}
    for measurement in measurements:
        if measurement.arm in found and group in (ALL, measurement.group):
            figure = measurement.scores.get(contrast.measure)
            if figure is not None:
                found[measurement.arm][measurement.item] = figure
    ours, theirs = found[contrast.arm], found[contrast.against]
    common = [item for item in ours if item in theirs]
    return [ours[item] for item in common], [theirs[item] for item in common]
