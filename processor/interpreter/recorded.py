"""Answers that were recorded: kept in a file, and given again without a model.

A cassette is a file of JSON Lines, one answer each under the identity of its request. A request
that is not in it is refused, loudly: another prompt, model or parameter would have been answered
otherwise, and nobody knows how.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, final

from processor.interpreter.request import Answer, Model, ModelRequest, Shape, UnfitEndpoint
from schemas.contract import Contract, Count, Digest
from schemas.log import Interpretation
from schemas.wire import WireError, canonical_bytes, decode_contract


class RecordedAnswer(Contract):
    """One answer, the identity of its request, and what shaped every request of its kind."""

    request: Digest
    model: str
    parameters: dict[str, str]
    answer: str
    refusal: str | None = None
    finish_reason: str | None = None
    tokens_in: Count = 0
    tokens_out: Count = 0
    milliseconds: Count = 0


class Unrecorded(Exception):  # noqa: N818 - it says what is wrong
    """There is no answer to a request."""


@final
class RecordedModel:
    """Gives the answers of a cassette or a history again."""

    name = "recorded"

    def __init__(self, place: str, answers: Iterable[RecordedAnswer]) -> None:
        self._place = place
        self._answers: dict[str, RecordedAnswer] = {}
        for answer in answers:
            self._answers.setdefault(answer.request, answer)

    async def shape(self) -> Shape:
        """The shape of the first request that was recorded. Raises UnfitEndpoint."""
        first = next(iter(self._answers.values()), None)
        if first is None:
            raise UnfitEndpoint(f"{self._place}: no answer of a model was recorded there")
        try:
            return Shape.read(first.model, first.parameters)
        except (KeyError, ValueError) as unknown:
            raise UnfitEndpoint(f"{self._place}: the parameters cannot be read") from unknown

    async def ask(self, request: ModelRequest) -> Answer:
        """The recorded answer. Raises Unrecorded."""
        identity = request.identity()
        found = self._answers.get(identity)
        if found is None:
            raise Unrecorded(
                f"{self._place}: no answer was recorded for request {identity[:16]} (prompt "
                f"{request.prompt.id}, model {request.shape.model}); record it with "
                "--interpreter openai --record FILE"
            )
        return Answer(
            text=found.answer,
            refusal=found.refusal,
            finish_reason=found.finish_reason,
            tokens_in=found.tokens_in,
            tokens_out=found.tokens_out,
            milliseconds=found.milliseconds,
        )


@final
@dataclass
class RecordingModel:
    """Asks another model, and writes every answer to a cassette before it hands it on."""

    model: Model
    cassette: BinaryIO

    @property
    def name(self) -> str:
        """The name of the other model."""
        return self.model.name

    async def shape(self) -> Shape:
        """The shape of the other model."""
        return await self.model.shape()

    async def ask(self, request: ModelRequest) -> Answer:
        """The other model's answer. Raises EndpointUnavailable or RequestRefused."""
        answer = await self.model.ask(request)
        fields = answer._asdict()
        line = RecordedAnswer(
            request=request.identity(),
            model=request.shape.model,
            parameters=request.shape.written(),
            answer=fields.pop("text"),
            **fields,
        )
        self.cassette.write(canonical_bytes(line) + b"\n")
        self.cassette.flush()
        return answer


def read_cassette(path: Path) -> Iterator[RecordedAnswer]:
    """The answers in a file. Raises WireError naming file, line and field, and OSError."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    yield decode_contract(RecordedAnswer, line)
                except WireError as invalid:
                    place = f"{path}:{number}" + (f": {invalid.place}" if invalid.place else "")
                    raise WireError(place, invalid.problem) from invalid


def answers_in(provenance: Interpretation) -> Iterator[RecordedAnswer]:
    """The answers that a log event holds, as far as they were short enough to be kept."""
    for call in provenance.calls:
        if call.answer is not None and provenance.model is not None:
            yield RecordedAnswer(
                request=call.request,
                model=provenance.model,
                parameters=provenance.parameters,
                answer=call.answer,
                refusal=call.refusal,
                finish_reason=call.finish_reason,
                tokens_in=call.tokens_in,
                tokens_out=call.tokens_out,
                milliseconds=call.milliseconds,
            )
