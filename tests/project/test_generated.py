"""The generated files are up to date, and the check for that can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.generate import FOLDER, HOW_TO_REFRESH, generated_files, main, stale_files, write_files


def test_the_published_schemas_are_up_to_date() -> None:
    """What stands in schemas/json is what the contracts give today."""
    stale = stale_files(FOLDER)
    assert not stale, (
        f"out of date in schemas/json: {', '.join(stale)}. If the contracts were changed on "
        f"purpose, {HOW_TO_REFRESH}; if not, undo the change, for readers elsewhere rely on them"
    )


def test_generating_twice_gives_the_same_bytes() -> None:
    """The files depend on the contracts alone, and end in one line break."""
    assert generated_files() == generated_files()
    assert all(content.endswith(b"}\n") for content in generated_files().values())


def test_the_check_names_what_is_out_of_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed, a missing and a left-over file are named, with what to run; the status is 1."""
    write_files(tmp_path)
    (tmp_path / "asyncapi.json").write_text("{}")
    (tmp_path / "standfast.turn.v1.schema.json").unlink()
    (tmp_path / "standfast.turn.v0.schema.json").write_text("{}")
    assert main(["--check", "--folder", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.count("is out of date") == 3
    for name in ("asyncapi.json", "standfast.turn.v0.schema.json", "standfast.turn.v1.schema.json"):
        assert name in said
    assert "make schemas" in said


def test_writing_brings_a_folder_up_to_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After writing, the check passes, left-over files are gone, and nothing else is written."""
    (tmp_path / "standfast.turn.v0.schema.json").write_text("{}")
    assert main(["--folder", str(tmp_path)]) == 0
    assert main(["--check", "--folder", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == set(generated_files())
    assert "wrote asyncapi.json" in capsys.readouterr().out
    assert write_files(tmp_path) == []
