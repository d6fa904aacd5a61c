"""`standfast evaluate NAME`: what it writes, that it goes on, and how it complains."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from replay.evaluate.benchmark import Item, Scores, Workload
from replay.evaluate.measurements import ITEMS_NAME, Measurements
from replay.evaluate.runner import data_digest, measure_all
from replay.evaluate.suites import BENCHMARKS
from tests.cli.test_commands import standfast

SUBJECT: dict[str, str | None] = {"benchmark": "counting", "seed": "0"}


class Counting(Workload):
    """Five items; it counts how often it is asked, and can be cut short."""

    def __init__(self, stops_after: int = 100) -> None:
        self.items = tuple(Item(str(place)) for place in range(5))
        self.asked = 0
        self._stops_after = stops_after

    def measure(self, item: Item, arm: str) -> Scores:
        """A figure of the item."""
        if self.asked == self._stops_after:
            raise KeyboardInterrupt
        self.asked += 1
        return {"figure": float(item.id)}


def complaint(*arguments: str | Path) -> str:
    """The one line on standard error of a command that ends with status 2."""
    done = standfast("evaluate", *arguments)
    assert (done.returncode, done.stdout) == (2, b""), done
    (line,) = done.stderr.decode().splitlines()
    return line


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `evaluate incident --out` writes."""
    folder = tmp_path_factory.mktemp("incident") / "out"
    done = standfast("evaluate", "incident", "--out", folder)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == (folder / "incident.md").read_text()
    return folder


def test_results_hold_every_item_under_every_arm(written: Path) -> None:
    """Four retractions, two arms, and a summary with an interval for each measure."""
    results: Any = orjson.loads((written / "results.json").read_bytes())
    assert len(results["items"]) == 8
    assert {item["arm"] for item in results["items"]} == {"closure", "one_step"}
    exact = {r["arm"]: r["figure"] for r in results["summary"] if r["measure"] == "exact"}
    assert exact["closure"] == {"mean": 1, "low": 1, "high": 1}
    assert exact["one_step"]["mean"] == 0.25
    assert exact["one_step"]["low"] <= 0.25 <= exact["one_step"]["high"]


def test_plots_are_written_as_svg_and_png(written: Path) -> None:
    """One of each for every measure."""
    stems = {path.stem for path in written.glob("incident-*.svg")}
    assert "incident-exact" in stems
    assert stems == {path.stem for path in written.glob("incident-*.png")}
    assert (written / "incident-exact.png").read_bytes().startswith(b"\x89PNG")


def test_a_second_run_writes_the_same_bytes(written: Path) -> None:
    """Nothing is measured again, and nothing in a table or a plot depends on the run."""
    before = {path.name: path.read_bytes() for path in written.iterdir()}
    done = standfast("evaluate", "incident", "--out", written)
    assert done.returncode == 0
    assert {path.name: path.read_bytes() for path in written.iterdir()} == before


def test_another_seed_is_refused_in_the_same_folder(written: Path) -> None:
    """Items of two seeds would be mixed."""
    told = complaint("incident", "--out", written, "--seed", "7")
    assert f"{ITEMS_NAME}:1: these items have another seed, '0' instead of '7'" in told


def test_the_data_must_be_named() -> None:
    """A benchmark that reads data says which when none is given."""
    assert "--data is missing: the scenarios of ReviseQA" in complaint("chains")


def test_an_unknown_arm_is_named_with_the_known_ones() -> None:
    """One line, with what there is."""
    told = complaint("incident", "--arms", "closure,guessing")
    assert told.endswith("no arm 'guessing'; there are closure, one_step")


def test_a_benchmark_without_questions_does_not_take_a_model() -> None:
    """The incident has nothing to ask a model."""
    assert "nothing to ask a model" in complaint("incident", "--reader", "openai")


def test_data_in_another_format_is_one_line(tmp_path: Path) -> None:
    """File, line and field are named."""
    path = tmp_path / "scenarios.jsonl"
    path.write_text('{"id": "ex_1"}\n')
    assert f"{path}:1: reasoning_chain: Field required" in complaint("chains", "--data", path)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "there is nothing in it to measure"),
        (
            '{"id": "a", "steps": [{"id": "s"}], "removed": "x", "affected": []}',
            "removed: there is no step or premise 'x'",
        ),
        (
            '{"id": "a", "steps": [{"id": "no id"}], "removed": "no id", "affected": []}',
            "record: String should match pattern",
        ),
    ],
)
def test_data_that_cannot_be_used_is_one_line(tmp_path: Path, line: str, problem: str) -> None:
    """Empty data, an unknown id, and an id that a record cannot have."""
    path = tmp_path / "recon.jsonl"
    path.write_text(line)
    told = complaint("recon", "--data", path)
    assert str(path) in told
    assert problem in told


def test_a_missing_extra_is_one_line_that_says_what_to_install() -> None:
    """Without SciPy the tables cannot be made."""
    code = (
        "import sys; sys.modules['scipy'] = None; sys.modules['numpy'] = None\n"
        "from processor.cli.main import main\n"
        "sys.argv = ['standfast', 'evaluate', 'incident']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.endswith("numpy is not installed; it comes with: pip install 'standfast[evaluate]'")


def test_an_interrupted_evaluation_goes_on(tmp_path: Path) -> None:
    """What was written before the interruption is not measured again; a cut line is."""
    first = Counting()
    whole = measure_all(
        first, first.items, ["a", "b"], Measurements(tmp_path, SUBJECT), lambda: None
    )
    path = tmp_path / ITEMS_NAME
    path.write_bytes(path.read_bytes()[:-5])
    again = Counting()
    kept = Measurements(tmp_path, SUBJECT)
    assert measure_all(again, again.items, ["a", "b"], kept, lambda: None) == whole
    assert (first.asked, again.asked) == (10, 1)


def test_one_command_per_benchmark() -> None:
    """Every benchmark is listed in the help, beside `operations`."""
    told = standfast("evaluate", "--help").stdout.decode()
    names = [each.name for each in BENCHMARKS]
    assert len(dict.fromkeys(names)) == len(names)
    for name in (*names, "operations"):
        assert f"  {name} " in told


def test_a_folder_of_data_has_a_digest_of_its_own(tmp_path: Path) -> None:
    """Names and contents count."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("1")
    before = data_digest(tmp_path)
    (tmp_path / "a" / "x").write_text("2")
    assert data_digest(tmp_path) not in (before, None)
