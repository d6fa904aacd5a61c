"""Diagrams never outlive their manager, whatever order Python frees them in."""

from __future__ import annotations

import subprocess
import sys

import pytest

_COLLECTED_IN_CYCLES = """
import gc
from processor.engine.plausibility import libraries
from processor.engine.plausibility.bounds import Bounds
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.syntax import parse
from processor.engine.plausibility.update import Update, UpdateKind


class Cycle:
    def __init__(self):
        self.itself = self
        self.model = Model(Bounds(), engine="diagrams")
        for number in range(5):
            formula = parse(f"o{number} & p{number}")
            self.model.append(Update(1, UpdateKind.ANNOUNCEMENT, formula))
        assert self.model.holds(parse("K_a p1"))


for _ in range(60):
    Cycle()
gc.collect()
last = Cycle()
print(len(libraries._owned) + len(libraries._orphaned))
"""


_WITHOUT_CUDD = """
import sys
sys.modules["dd.cudd"] = None
"""


@pytest.mark.parametrize("before", ["", _WITHOUT_CUDD], ids=["best library", "pure Python"])
def test_models_collected_in_reference_cycles_leave_no_manager_and_no_complaint(
    before: str,
) -> None:
    """Nothing is printed to standard error, and only the managers in use are kept."""
    ran = subprocess.run(
        [sys.executable, "-c", before + _COLLECTED_IN_CYCLES],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr == ""
    assert int(ran.stdout) <= 2
