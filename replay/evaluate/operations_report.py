"""The results of `evaluate operations`: every item as JSON, and a table to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean
from typing import NamedTuple, final

from replay.evaluate.operations import Score, score
from replay.evaluate.operations_runs import Run, Subject

PUBLISHED = (
    "Published beside these (Grounded Continuation, Table 2 and section 4.3, one large model "
    "on its own wording of the scenarios): incident F1 0.66 minimal, 0.85 definitions, 0.91 state "
    "augmented, key shifts 0.74 to 0.83 with the state; deliberation 0.85 with definitions."
)


@final
class Spread(NamedTuple):
    """A figure over several runs."""

    mean: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        if self.lowest == self.highest:
            return f"{self.mean:.2f}"
        return f"{self.mean:.2f} ({self.lowest:.2f} to {self.highest:.2f})"


@final
class Row(NamedTuple):
    """One scenario under one condition: over all turns, and over those with a key shift."""

    scenario: str
    condition: str
    runs: int
    turns: int
    unreadable: int
    f1: Spread
    exact_match: Spread
    key_shifts: int
    key_shift_f1: Spread
    key_shift_exact_match: Spread
    tokens_per_turn: float


def summarise(runs: Sequence[Run]) -> tuple[Row, ...]:
    """One row for each scenario and condition, in the order in which they were run."""
    pairs = dict.fromkeys((turn.scenario, run.condition) for run in runs for turn in run.items)
    return tuple(_row(scenario, condition, runs) for scenario, condition in pairs)


def results(subject: Subject, runs: Sequence[Run]) -> dict[str, object]:
    """Everything that was measured, as it goes into `results.json`."""
    return {
        "benchmark": "operations",
        "subject": subject,
        "summary": [_as_json(row) for row in summarise(runs)],
        "runs": runs,
    }


def table(subject: Subject, runs: Sequence[Run]) -> str:
    """The summary in Markdown."""
    rows = summarise(runs)
    who = subject.get("model") or subject["interpreter"]
    lines = [
        f"Operations read by `{who}`, first answers, multi-label over the kinds in a turn; "
        "over several runs the mean (lowest to highest).",
        "",
        "| scenario | condition | runs | turns | F1 | exact match | key shifts | F1 there "
        "| exact match there | unreadable | tokens per turn |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = (
            *(row.scenario, row.condition, row.runs, row.turns, row.f1, row.exact_match),
            *(row.key_shifts, row.key_shift_f1, row.key_shift_exact_match),
            *(row.unreadable, f"{row.tokens_per_turn:,.0f}"),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, "", PUBLISHED, ""])


def _row(scenario: str, condition: str, runs: Sequence[Run]) -> Row:
    passes = [
        [turn for turn in run.items if turn.scenario == scenario]
        for run in runs
        if run.condition == condition
    ]
    overall = [score(turns) for turns in passes]
    shifts = [score([turn for turn in turns if turn.is_key_shift]) for turns in passes]
    tokens = sum(turn.tokens_in + turn.tokens_out for turns in passes for turn in turns)
    return Row(
        scenario=scenario,
        condition=condition,
        runs=len(passes),
        turns=overall[0].turns,
        unreadable=sum(each.unreadable for each in overall),
        f1=_spread(overall, lambda each: each.f1),
        exact_match=_spread(overall, lambda each: each.exact_match),
        key_shifts=shifts[0].turns,
        key_shift_f1=_spread(shifts, lambda each: each.f1),
        key_shift_exact_match=_spread(shifts, lambda each: each.exact_match),
        tokens_per_turn=tokens / sum(map(len, passes)),
    )


def _spread(scores: Sequence[Score], figure: Callable[[Score], float]) -> Spread:
    figures = [figure(each) for each in scores]
    return Spread(mean(figures), min(figures), max(figures))


def _as_json(row: Row) -> dict[str, object]:
    return {
        name: value._asdict() if isinstance(value, Spread) else value
        for name, value in row._asdict().items()
    }
