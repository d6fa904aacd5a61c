"""Graph traversal and the flat history give the same answers, and the plot is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
from hypothesis import given, settings

from processor.engine.retraction import affected_closure
from processor.engine.verify import is_grounded
from replay.compare import SIZES, flat_affected, flat_history, flat_is_grounded
from tests.properties.engine_driver import folded
from tests.replay.test_store import standfast
from tests.strategies_streams import ONE_CONVERSATION, Stream, streams


@settings(max_examples=40)
@given(streams(12, ONE_CONVERSATION))
def test_both_ways_agree_on_every_record(stream: Stream) -> None:
    """Of random conversations, links added later and cycles included, every answer is the same."""
    (conversation,) = folded(stream).conversations.values()
    history = flat_history(conversation)
    records = conversation.state.records.values()
    fallen = frozenset(record.id for record in records if not record.stands)
    for record in records:
        assert {each.id for each in affected_closure(record)} == flat_affected(history, record.id)
        assert is_grounded(record) == flat_is_grounded(history, fallen, record.id)


def test_the_command_tells_the_ratio_at_each_size_and_plots(tmp_path: Path) -> None:
    """Each size has its figures, the ratio grows with the conversation, both plots are files."""
    done = standfast("replay", "compare", "--sizes", "200,13", "--out", tmp_path, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    told = orjson.loads(done.stdout)
    small, large = told["sizes"]
    assert (small["turns"], large["turns"]) == (13, 200)
    assert (small["disagreements"], large["disagreements"]) == (0, 0)
    assert large["ratio"] > small["ratio"] > 1
    assert (tmp_path / "compare.svg").read_bytes().lstrip().startswith(b"<?xml")
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG")
    assert SIZES[-1] == 100_000


def test_without_matplotlib_the_line_says_what_to_install(tmp_path: Path) -> None:
    """A plot that was asked for and cannot be made is status 2, after the figures."""
    hidden = "import sys; sys.modules['matplotlib.figure'] = None; sys.argv[0] = 'standfast'; "
    code = hidden + "from processor.cli.main import main; main()"
    arguments = ["replay", "compare", "--sizes", "13", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert b"standfast[evaluate]" in line
    for sizes in ("13,x", "0", "999999999"):
        bad = standfast("replay", "compare", "--sizes", sizes)
        assert (bad.returncode, bad.stderr.count(b"\n")) == (2, 1)
