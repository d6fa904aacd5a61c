"""How a run without a broker has text read: one utterance at a time, and waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import final

from processor.app.interpreter_settings import InterpreterKind, InterpreterSettings
from processor.app.interpreters import Opened, open_interpreter
from processor.app.settings import interpreter_settings
from processor.app.tenants import Tenants
from processor.app.utterance_reader import UtteranceReader
from processor.cli.errors import BadInputError
from processor.cli.output import complain
from processor.engine.conversation import Conversation
from processor.interpreter.port import EndpointUnavailable, Interpreted
from processor.interpreter.recorded import Unrecorded
from processor.interpreter.request import UnfitEndpoint
from schemas.utterance import Utterance


@final
class WaitingReader:
    """Reads with an event loop of its own."""

    def __init__(self, runner: asyncio.Runner, reader: UtteranceReader) -> None:
        self._runner = runner
        self._reader = reader

    def read(self, conversation: Conversation, utterance: Utterance) -> Interpreted | None:
        """What stands of what an utterance says. Raises BadInputError if it was not recorded."""
        try:
            reading = self._runner.run(self._reader.read(conversation, utterance))
        except Unrecorded as unrecorded:
            asked_for = utterance.utterance_id
            raise BadInputError(f"{unrecorded}; asked for {asked_for!r}") from unrecorded
        return self._reader.standing(conversation, utterance, reading)


@contextmanager
def reading(
    kind: InterpreterKind,
    cassette: Path | None,
    record: Path | None,
    rules_version: int,
    tenants: Tenants,
) -> Iterator[WaitingReader]:
    """Who reads, as the options and the environment say; a model is tried before it is used.

    Raises SettingsError and BadInputError.
    """
    given = {"kind": kind, "cassette": cassette, "record": record}
    settings = interpreter_settings({k: v for k, v in given.items() if v is not None})
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        opened = runner.run(stack.enter_async_context(open_interpreter(settings)))
        try:
            assert opened is not None, "native reads nothing"
            runner.run(try_out(opened, settings))
            told = _Told()
            yield WaitingReader(
                runner,
                UtteranceReader(
                    opened.interpreter,
                    rules_version,
                    tenants,
                    settings.outage_seconds_max,
                    told.answers,
                ),
            )
        finally:
            runner.run(stack.aclose())


async def try_out(opened: Opened, settings: InterpreterSettings) -> None:
    """See that a model can be used. Raises BadInputError."""
    where = settings.base_url or "the endpoint"
    try:
        await opened.model.shape()
    except EndpointUnavailable as unavailable:
        raise BadInputError(f"{where} cannot be used: {unavailable}") from unavailable
    except UnfitEndpoint as unfit:
        raise BadInputError(str(unfit)) from unfit


@final
class _Told:
    """Says once that an endpoint is waited for."""

    def __init__(self) -> None:
        self._answers = True

    def answers(self, answers: bool) -> None:
        if self._answers and not answers:
            complain("the endpoint does not answer; waiting for it")
        self._answers = answers
