"""Moments carry a zone, and equal moments have equal bytes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.evidence import Atom
from schemas.utterance import Utterance
from schemas.wire import WireError, canonical_bytes, decode_utterance
from tests.contracts.examples import changed
from tests.strategies import MOMENTS


def _said_at(written: object) -> Utterance:
    return decode_utterance(orjson.dumps(changed("standfast.utterance.v1", "at", written)))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-03-01T02:31:00Z", datetime(2026, 3, 1, 2, 31, tzinfo=UTC)),
        ("2026-03-01T02:31Z", datetime(2026, 3, 1, 2, 31, tzinfo=UTC)),
        ("2026-03-01 02:31:00+00:00", datetime(2026, 3, 1, 2, 31, tzinfo=UTC)),
        ("2026-03-01t02:31:00z", datetime(2026, 3, 1, 2, 31, tzinfo=UTC)),
        ("2026-03-01T04:01:00+01:30", datetime(2026, 3, 1, 2, 31, tzinfo=UTC)),
        ("2026-02-28T23:59:59.25-02:00", datetime(2026, 3, 1, 1, 59, 59, 250_000, tzinfo=UTC)),
        ("2026-03-01T02:31:00.123456999Z", datetime(2026, 3, 1, 2, 31, 0, 123_456, tzinfo=UTC)),
        ("2026-03-01T08:30:00+05:59", datetime(2026, 3, 1, 2, 31, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_moment_with_a_zone_is_read_as_utc(written: str, read: datetime) -> None:
    """Whatever its zone, a moment is kept in UTC."""
    assert _said_at(written).at == read
    assert _said_at(written).at.tzinfo is UTC


@pytest.mark.parametrize(
    "written",
    [
        "2026-03-01T02:31:00",
        "2026-03-01",
        "2026-03-01T02:31:00 CET",
        "1772332260",
        1_772_332_260,
        1_772_332_260.5,
        "2026-02-30T02:31:00Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T02:31:60Z",
        "2026-03-01T02:31:00+25:00",
        "2026-03-01T02:31:00+05:60",
        "2026-03-01T02:31:00-00:99",
        "2026-03-01T02:31:00.1234567890Z",
        "\uff12\uff10\uff12\uff16-03-01T02:31:00Z",
        " 2026-03-01T02:31:00Z",
        "2026-03-01T02:31:00Z\n",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "",
        None,
    ],
)
def test_what_is_no_moment_with_a_zone_is_refused(written: object) -> None:
    """A naive time, a bare number and a date outside the calendar are refused at `at`."""
    with pytest.raises(WireError) as refused:
        _said_at(written)
    assert refused.value.place == "at"


def test_a_naive_datetime_is_refused_from_python_too() -> None:
    """Code that builds an event cannot bring in a time without a zone either."""
    moment = datetime(2026, 3, 1, 2, 31)
    with pytest.raises(ValidationError, match="timezone"):
        Utterance(conversation_id="c", utterance_id="u", speaker="a", at=moment)


@given(moment=MOMENTS, minutes=st.integers(-12 * 60, 12 * 60))
def test_equal_moments_in_two_zones_have_equal_bytes(moment: datetime, minutes: int) -> None:
    """The zone a moment was written in leaves no trace in the canonical bytes."""
    elsewhere = moment.astimezone(timezone(timedelta(minutes=minutes)))
    first, second = (
        canonical_bytes(Utterance(conversation_id="c", utterance_id="u", speaker="a", at=at))
        for at in (moment, elsewhere)
    )
    assert first == second


@pytest.mark.parametrize(
    "written",
    [
        "2026",
        "2026-02",
        "2024-02-29",
        "2026-03-01T02:31Z",
        "2026-03-01T02:31:00.5+01:00",
    ],
)
def test_valid_time_may_be_coarse(written: str) -> None:
    """A source that knows only a year, month or day may say just that."""
    assert Atom(entity="e", attribute="a", value="v", valid_from=written).valid_from == written


@pytest.mark.parametrize(
    "written",
    [
        "26",
        "0000",
        "2026-13",
        "2026-02-30",
        "2026-03-01T02:31",
        "2026-03-01T24:00Z",
        "2026-W09",
        "2026-03-01T02:31+05:60",
        "\uff12\uff10\uff12\uff16",
        "2026\n",
        "",
    ],
)
def test_a_valid_time_that_is_no_date_is_refused(written: str) -> None:
    """The right shape is not enough: the date must exist."""
    with pytest.raises(ValidationError):
        Atom(entity="e", attribute="a", value="v", valid_from=written)
