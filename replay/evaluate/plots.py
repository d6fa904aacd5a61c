"""Plots of a report: bars by arm, or lines where the groups are numbers; SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replay.evaluate.extra import needed
from replay.evaluate.report import ALL, Report, Row

_DPI = 120
_WIDE = 1_000
"""An axis that reaches over this ratio is logarithmic."""


def draw(made: Report, folder: Path) -> list[Path]:
    """One plot per measure, as SVG and as PNG. Raises ExtraMissing and OSError."""
    matplotlib = needed("matplotlib")
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "standfast"  # names in an SVG: the same in every run
    pyplot = needed("matplotlib.pyplot")
    written: list[Path] = []
    for measure in dict.fromkeys(row.measure for row in made.rows):
        rows = [row for row in made.rows if row.measure == measure]
        figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
        if made.benchmark.axis is None:
            _bars(axes, rows)
        else:
            _lines(axes, [row for row in rows if row.group != ALL], made.benchmark.axis)
        axes.set_title(f"{made.benchmark.name}: {measure.replace('_', ' ')}")
        for suffix in ("svg", "png"):
            path = folder / f"{made.benchmark.name}-{measure.replace('_', '-')}.{suffix}"
            metadata = {"Date": None} if suffix == "svg" else {"Software": None}
            figure.savefig(path, dpi=_DPI, metadata=metadata)
            written.append(path)
        pyplot.close(figure)
    return written


def _bars(axes: Any, rows: Sequence[Row]) -> None:
    arms = list(dict.fromkeys(row.arm for row in rows))
    groups = list(dict.fromkeys(row.group for row in rows))
    height = 0.8 / len(groups)
    for place, group in enumerate(groups):
        shown = [row for row in rows if row.group == group]
        axes.barh(
            [arms.index(row.arm) + place * height for row in shown],
            [row.figure.mean for row in shown],
            height,
            xerr=_whiskers(shown),
            label=group or "all",
            capsize=2,
        )
    axes.set_yticks([place + 0.4 - height / 2 for place in range(len(arms))], arms)
    axes.invert_yaxis()
    if len(groups) > 1:
        axes.legend(fontsize="small")


def _lines(axes: Any, rows: Sequence[Row], axis: str) -> None:
    for arm in dict.fromkeys(row.arm for row in rows):
        shown = [row for row in rows if row.arm == arm]
        axes.errorbar(
            [float(row.group) for row in shown],
            [row.figure.mean for row in shown],
            yerr=_whiskers(shown),
            label=arm,
            marker="o",
            capsize=2,
        )
    figures = [row.figure.mean for row in rows]
    groups = [float(row.group) for row in rows]
    if min(figures) > 0 and max(figures) > _WIDE * min(figures):
        axes.set_yscale("log")
    if min(groups) > 0 and max(groups) > _WIDE * min(groups):
        axes.set_xscale("log")
    axes.set_xlabel(axis)
    axes.legend(fontsize="small")


def _whiskers(rows: Sequence[Row]) -> list[list[float]]:
    """How far the interval reaches below and above the mean, which bootstrap may put outside it."""
    return [
        [max(0.0, row.figure.mean - row.figure.low) for row in rows],
        [max(0.0, row.figure.high - row.figure.mean) for row in rows],
    ]
