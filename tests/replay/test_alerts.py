"""The alerts of a store behind a place: pages, bounds, and what came with a checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import orjson
import pytest

import replay.alerts as bounded
from replay.alerts import AlertPage, AlertPlace, alerts_since
from schemas.http import PLACE_MAX
from tests.cli.test_commands import standfast
from tests.web.fake import observe, statement

WHOLE = AlertPlace(0, 0)
CLAIMS = [{"text": f"so {number}", "record": "h1"} for number in range(3)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store: a withdrawal at sequence 3, drafts with three claims each at 4 and 6."""
    revise = {"op": "revise", "target": "o1", "by": {"record": "e2", "claim": "No."}}
    folder = tmp_path_factory.mktemp("alerts")
    said = [
        statement("u1", observe("o1")),
        statement("u2", observe("h1", "o1")),
        statement("u3", revise),
        _draft("d4"),
        statement("u5", observe("o5")),
        _draft("d6"),
    ]
    (folder / "said.jsonl").write_bytes(b"\n".join(map(orjson.dumps, said)))
    assert standfast("run", folder / "said.jsonl", "--out", folder / "out").returncode == 0
    return folder / "out" / "standfast.duckdb"


def _draft(candidate_id: str) -> dict[str, object]:
    fields = statement(candidate_id, kind="candidate", claims=CLAIMS)
    del fields["operations"]
    return fields


@pytest.fixture
def connection(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The store, read only."""
    with duckdb.connect(str(path), read_only=True) as opened:
        yield opened


def since(
    connection: duckdb.DuckDBPyConnection, place: AlertPlace, most: int = 100, name: str = "c1"
) -> AlertPage:
    """The alerts behind a place."""
    return alerts_since(connection, "acme", name, place, most, folded=6)


def places(page: AlertPage) -> list[tuple[int, str | None]]:
    """The log event of each alert, and the claim that it is about."""
    return [
        (place.sequence, None if alert.candidate is None else alert.candidate.text)
        for place, alert in page.alerts
    ]


EVERY = [(sequence, f"so {number}") for sequence in (4, 6) for number in range(3)]


def test_all_alerts_come_in_the_order_of_the_log(connection: duckdb.DuckDBPyConnection) -> None:
    """One for each claim of each draft; the next page begins behind all that is folded."""
    page = since(connection, WHOLE)
    assert places(page) == EVERY
    assert page == page._replace(since=AlertPlace(6, PLACE_MAX), is_last=True, is_whole=True)


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5])
def test_pages_of_any_size_give_each_alert_once(
    connection: duckdb.DuckDBPyConnection, most: int
) -> None:
    """A page may end in the midst of what one log event gave."""
    found, place = [], WHOLE
    for _ in range(7):
        page = since(connection, place, most)
        assert len(page.alerts) <= most
        assert page.is_whole
        found += places(page)
        place = page.since
        if page.is_last:
            break
    assert found == EVERY
    assert since(connection, place).alerts == ()


def test_a_page_tells_so_many_bytes_and_at_least_one_alert(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alerts too large for one page come on several."""
    monkeypatch.setattr(bounded, "ALERT_BYTES_MAX", 1)
    page = since(connection, WHOLE)
    assert (places(page), page.is_last) == (EVERY[:1], False)


def test_without_alerts_a_place_still_moves_on(connection: duckdb.DuckDBPyConnection) -> None:
    """Who comes again with it has missed nothing, though nothing was told."""
    page = since(connection, AlertPlace(6, 9))
    assert page == AlertPage((), AlertPlace(6, PLACE_MAX), is_last=True, is_whole=True)


def from_checkpoint(path: Path, folder: Path, first: int) -> duckdb.DuckDBPyConnection:
    """The same store as one that began before a log event, as from a shared checkpoint."""
    copy = folder / "copy.duckdb"
    shutil.copy(path, copy)
    opened = duckdb.connect(str(copy))
    for table in ("log", "derived"):
        opened.execute(f"DELETE FROM {table} WHERE sequence < {first}")
    return opened


@pytest.mark.parametrize(("first", "begin"), [(5, 4), (7, 6)])
def test_alerts_from_before_a_checkpoint_are_said_to_be_missing(
    path: Path, tmp_path: Path, first: int, begin: int
) -> None:
    """Nothing is told until it is asked for from where on all are there."""
    with from_checkpoint(path, tmp_path, first) as opened:
        page = since(opened, WHOLE)
        assert page == AlertPage((), AlertPlace(begin, PLACE_MAX), is_last=False, is_whole=False)
        again = since(opened, page.since)
        assert again.is_whole
        assert places(again) == [each for each in EVERY if each[0] >= first]


def test_who_had_all_before_a_checkpoint_misses_nothing(path: Path, tmp_path: Path) -> None:
    """The place at the end of a last page is still good at a worker that begins behind it."""
    with from_checkpoint(path, tmp_path, 5) as opened:
        assert since(opened, AlertPlace(4, PLACE_MAX)).is_whole
        assert not since(opened, AlertPlace(4, 2)).is_whole
        assert since(opened, AlertPlace(5, 0)).is_whole
