"""What a model answered, kept beside the measurements: nothing is asked, or paid for, twice.

Readings are kept like answers to questions, so an interruption in the midst of reading a long
stream costs the call that was under way.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, NamedTuple, final

from processor.interpreter.recorded import (
    RecordedAnswer,
    RecordedModel,
    RecordingModel,
    Unrecorded,
    read_cassette,
)
from processor.interpreter.request import Answer, Model, ModelRequest, Shape
from replay.evaluate.measurements import drop_cut_line

ANSWERS_NAME = "answers.jsonl"


@final
class Spent(NamedTuple):
    """What all answers together took, those of earlier runs included."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    milliseconds: int = 0

    def with_(self, answer: Answer | RecordedAnswer) -> Spent:
        """One answer more."""
        return Spent(
            self.calls + 1,
            self.tokens_in + answer.tokens_in,
            self.tokens_out + answer.tokens_out,
            self.milliseconds + answer.milliseconds,
        )


@final
class RememberingModel:
    """Asks another model what it did not answer before; keeps each answer before it hands it on."""

    def __init__(self, model: Model, folder: Path, cassette: BinaryIO) -> None:
        path = folder / ANSWERS_NAME
        before = list(read_cassette(path))
        self._before = RecordedModel(str(path), before)
        self._asking = RecordingModel(model, cassette)
        self.spent = Spent()
        for answer in before:
            self.spent = self.spent.with_(answer)

    @property
    def name(self) -> str:
        """The name of the other model."""
        return self._asking.name

    async def shape(self) -> Shape:
        """The shape of the other model."""
        return await self._asking.shape()

    async def ask(self, request: ModelRequest) -> Answer:
        """The answer of an earlier run, else the other model's.

        Raises EndpointUnavailable or RequestRefused.
        """
        try:
            return await self._before.ask(request)
        except Unrecorded:
            answer = await self._asking.ask(request)
            self.spent = self.spent.with_(answer)
            return answer


def open_answers(folder: Path) -> BinaryIO:
    """The file of answers, to be added to; a last line that was cut short is dropped."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ANSWERS_NAME
    drop_cut_line(path)
    return path.open("ab")
