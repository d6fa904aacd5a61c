"""A token goes to the gate and nowhere else: no repr, log, exception, answer or copy has it."""

from __future__ import annotations

import copy
import io
import logging
import pickle
import traceback
from typing import Any

import httpx2
import pytest

from processor.client import Guard, GuardError, RefusedError
from tests.client.asking import CLAIM

TOKEN = "sf_" + "0123456789abcdef" * 2


def failing(error: Exception | None, status: int = 200) -> Guard:
    """A guard whose connection fails, or answers with what it was sent."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        if error is not None:
            raise error
        return httpx2.Response(status, text="no problem details")

    transport = httpx2.MockTransport(answer)
    return Guard("http://gate", "acme", TOKEN, fail="closed", seconds=0.2, transport=transport)


def _whole(error: BaseException) -> str:
    """All that a report of an error shows, with the values of every frame's names."""
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join(told.format())


@pytest.mark.parametrize(
    "error",
    [
        httpx2.ConnectError(f"cannot send Bearer {TOKEN}"),
        httpx2.LocalProtocolError(f"Illegal header value b'Bearer {TOKEN}'"),
        httpx2.ReadTimeout(f"{TOKEN}"),
        None,
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_answer_and_no_log_has_the_token(error: Exception | None) -> None:
    """Whatever the HTTP library says of a failure, and with every logger at its most talkative."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with failing(error) as guard:
            answer = guard.check("c1", [CLAIM])
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    assert answer.outcome == "unavailable"
    assert TOKEN not in repr(answer) + str(answer.as_dict()) + answer.explanation
    assert TOKEN not in written.getvalue()


def test_no_exception_has_the_token_not_even_in_the_values_of_its_frames() -> None:
    """As reports of errors show them that print local names."""
    with failing(None, status=403) as guard, pytest.raises(RefusedError) as refused:
        guard.check("c1", [CLAIM])
    assert TOKEN not in _whole(refused.value)
    assert refused.value.__cause__ is None
    assert isinstance(refused.value, GuardError)


def test_a_guard_shows_where_it_asks_and_not_as_whom() -> None:
    """Address, tenant and what holds without a verdict."""
    guard = Guard("http://gate/under/", "acme", TOKEN, fail="open")
    assert repr(guard) == "Guard('http://gate/under', 'acme', fail='open')"
    assert TOKEN not in repr(vars(guard))


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy])
def test_a_token_is_copied_nowhere(copied: Any) -> None:
    """A guard that is sent to another process, or kept, would take its token along."""
    with pytest.raises(TypeError, match="a token is not written anywhere"):
        copied(Guard("http://gate", "acme", TOKEN, fail="open")._token)
