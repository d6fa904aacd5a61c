"""Recorded answers: what a request's identity depends on, cassettes, histories, what is refused."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest

from processor.interpreter.port import Reading
from processor.interpreter.prompt import Message, MessageRole, Prompt
from processor.interpreter.recorded import (
    RecordedModel,
    RecordingModel,
    Unrecorded,
    answers_in,
    read_cassette,
)
from processor.interpreter.request import Dialect, LimitField, ModelRequest, Shape, UnfitEndpoint
from schemas.wire import WireError
from tests.interpreter.asking import WANTED, ask, draft, model_at, utterance, with_model
from tests.interpreter.scripted_endpoint import Said, ScriptedEndpoint, claims, operations

OBSERVE = {"op": "observe", "record": "o1", "claim": "it rains"}
PROMPT = Prompt("p", "a" * 64, (Message(MessageRole.USER, "hello"),))
REQUEST = ModelRequest(WANTED, PROMPT, "operations", {"type": "object"})
OTHERS: list[dict[str, Any]] = [
    {"shape": WANTED._replace(model="another")},
    {"shape": WANTED._replace(dialect=Dialect.TOOL)},
    {"shape": WANTED._replace(temperature=0.5)},
    {"shape": WANTED._replace(temperature=None)},
    {"shape": WANTED._replace(seed=1)},
    {"shape": WANTED._replace(answer_tokens_max=4_096)},
    {"shape": WANTED._replace(limit_field=LimitField.MAX_COMPLETION_TOKENS)},
    {"prompt": PROMPT._replace(id="q")},
    {"prompt": PROMPT._replace(hash="b" * 64)},
    {"prompt": PROMPT._replace(messages=(Message(MessageRole.USER, "hello!"),))},
    {"prompt": PROMPT._replace(messages=(Message(MessageRole.SYSTEM, "hello"),))},
    {"prompt": PROMPT._replace(messages=PROMPT.messages * 2)},
    {"schema_name": "claims"},
    {"schema": {"type": "array"}},
]


def test_an_identity_depends_on_everything_that_shapes_the_answer() -> None:
    """Each change of model, dialect, parameter, prompt, message or schema gives another one."""
    identities = [REQUEST._replace(**change).identity() for change in OTHERS]
    assert len({REQUEST.identity(), *identities}) == 1 + len(OTHERS)


def test_an_identity_is_the_same_everywhere() -> None:
    """It is a stored value: recordings of other machines and years are found by it."""
    identity = "12f0f0e24606b24cae1eec06d38dbabaea508ed5874c003ad6cb05ccb78d5c11"
    assert REQUEST.identity() == identity


@pytest.mark.parametrize("shape", [WANTED, WANTED._replace(temperature=None, seed=None)])
def test_a_shape_is_read_as_it_was_written(shape: Shape) -> None:
    """So a recording says how its requests looked."""
    assert Shape.read(shape.model, shape.written()) == shape


def test_a_cassette_gives_the_same_readings_without_an_endpoint(tmp_path: Path) -> None:
    """Statements, drafts, corrections and refusals; only the interpreter has another name."""
    steps = [operations(OBSERVE), claims(), Said("Sorry?"), operations(), Said("", refusal="no")]
    said = [utterance("a"), draft("b"), utterance("c"), utterance("d")]
    cassette = io.BytesIO()
    with ScriptedEndpoint(steps) as endpoint:

        async def record(model: Any) -> list[Any]:
            recording = RecordingModel(model, cassette)
            return [await ask(recording, each) for each in said]

        recorded = with_model(model_at(endpoint), record)
    path = tmp_path / "cassette.jsonl"
    path.write_bytes(cassette.getvalue())
    model = RecordedModel(str(path), read_cassette(path))
    again = [asyncio.run(ask(model, each)) for each in said]
    assert [each.provenance.interpreter for each in again] == ["recorded"] * 4
    assert recorded == [
        each._replace(provenance=each.provenance.model_copy(update={"interpreter": "openai"}))
        for each in again
    ]
    history = [answer for each in recorded for answer in answers_in(each.provenance)]
    assert history == list(read_cassette(path))


def test_what_was_not_recorded_is_refused() -> None:
    """The message says what to do; a recording without answers is refused at once."""
    with ScriptedEndpoint([operations(OBSERVE)]) as endpoint:
        reading = with_model(model_at(endpoint), ask)
    assert isinstance(reading, Reading)
    model = RecordedModel("it.jsonl", answers_in(reading.provenance))
    with pytest.raises(Unrecorded, match=r"it\.jsonl: no answer was recorded .* --record FILE"):
        asyncio.run(ask(model, utterance("something else")))
    with pytest.raises(UnfitEndpoint, match="no answer of a model was recorded there"):
        asyncio.run(ask(RecordedModel("it.jsonl", ())))


def test_a_bad_line_of_a_cassette_is_named(tmp_path: Path) -> None:
    """By file, line and field."""
    path = tmp_path / "bad.jsonl"
    path.write_text('\n{"request": "x"}\n')
    with pytest.raises(WireError, match=r"bad\.jsonl:2: request: String should match"):
        list(read_cassette(path))
