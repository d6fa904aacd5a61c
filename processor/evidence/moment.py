"""Valid times as numbers that can be compared, whatever their precision."""

from __future__ import annotations

from datetime import date, datetime

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND


def beginning(written: str | None) -> int | None:
    """The first microsecond of a year, month, day or moment, counted from the year 1 in UTC."""
    if written is None:
        return None
    if "T" not in written:
        return date.fromisoformat((written + "-01-01")[:10]).toordinal() * _DAY
    moment = datetime.fromisoformat(written)
    offset = moment.utcoffset()
    assert offset is not None, "the contract asks for a zone"
    of_day = (moment.hour * 60 + moment.minute) * 60 + moment.second - int(offset.total_seconds())
    return moment.toordinal() * _DAY + of_day * _SECOND + moment.microsecond
