"""What the renderer says of the scenarios is what the golden files hold, word for word."""

from __future__ import annotations

from tests.render.golden import FOLDER, rendered


def test_the_scenarios_are_rendered_as_the_golden_files_say() -> None:
    """Every view, update and explanation is as it was read over last."""
    stored = {path.name: path.read_text() for path in sorted(FOLDER.glob("*.txt"))}
    made = rendered()
    assert sorted(made) == sorted(stored), "run python -m tests.render.golden"
    for name, text in made.items():
        assert text == stored[name], f"{name}: run python -m tests.render.golden, read what changed"
