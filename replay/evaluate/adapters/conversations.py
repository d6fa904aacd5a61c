"""Long conversations with questions whose evidence is known: LoCoMo, LongMemEval, BEAM.

Each format becomes the same thing: turns with an id, and questions with the ids of the turns that
the answer rests on.

Sources: Maharana et al. 2024, LoCoMo; Wu et al. 2024, LongMemEval; Tavakoli et al. 2026, BEAM.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

from pydantic import TypeAdapter, ValidationError

from replay.evaluate.adapters import AdapterError, Published, moment
from schemas.utterance import Utterance
from schemas.wire import WireError, decode_json

_DIALOGUE_ID = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")
LOCOMO_CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}


@final
class Turn(NamedTuple):
    """One turn: its id in the data, who said it, and what."""

    id: str
    speaker: str
    text: str

    def line(self) -> str:
        """The turn as it is handed over."""
        return f"{self.speaker}: {self.text}"


@final
class Query(NamedTuple):
    """One question; `revised` is evidence that later evidence replaced, where the data says so."""

    id: str
    group: str
    question: str
    answer: str
    evidence: tuple[str, ...]
    revised: tuple[str, ...] = ()


@final
class Talk(NamedTuple):
    """One conversation with its questions."""

    id: str
    turns: tuple[Turn, ...]
    queries: tuple[Query, ...]

    def utterances(self) -> Iterator[Utterance]:
        """The turns in words alone: what they say is for an interpreter to tell."""
        for place, turn in enumerate(self.turns):
            yield Utterance(
                conversation_id=self.id,
                utterance_id=f"u{place}",
                speaker=turn.speaker,
                text=turn.text or "(nothing)",
                at=moment(place),
            )


class _Spoken(Published):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class _LocomoQuestion(Published):
    question: str
    answer: str | int | float | None = None
    evidence: tuple[str, ...] = ()
    category: int


class _LocomoSample(Published):
    sample_id: str
    conversation: dict[str, Any]
    qa: tuple[_LocomoQuestion, ...]


class _Message(Published):
    role: str
    content: str
    has_answer: bool = False


class _LongMemEval(Published):
    question_id: str
    question_type: str
    question: str
    answer: str | int | float
    haystack_dates: tuple[str, ...] = ()
    haystack_sessions: tuple[tuple[_Message, ...], ...]


class _BeamTurn(Published):
    role: str
    id: int
    content: str


class _BeamBatch(Published):
    turns: tuple[tuple[_BeamTurn, ...], ...]


class _BeamQuestion(Published):
    question: str
    answer: str | None = None
    ideal_answer: str | None = None
    ideal_response: str | None = None
    source_chat_ids: Any = ()


def locomo(path: Path) -> Iterator[Talk]:
    """The samples of LoCoMo's file. Raises AdapterError, OSError."""
    for sample in _read(path, TypeAdapter(tuple[_LocomoSample, ...])):
        sessions = [name for name in sample.conversation if _SESSION.fullmatch(name)]
        sessions.sort(key=lambda name: int(name.removeprefix("session_")))
        turns = [
            _spoken(each, f"{path}: {sample.sample_id}: {name}")
            for name in sessions
            for each in sample.conversation[name]
        ]
        queries = (
            Query(
                f"{sample.sample_id} q{place}",
                LOCOMO_CATEGORIES.get(asked.category, str(asked.category)),
                asked.question,
                "" if asked.answer is None else str(asked.answer),
                tuple(dict.fromkeys(_DIALOGUE_ID.findall(" ".join(asked.evidence)))),
            )
            for place, asked in enumerate(sample.qa)
        )
        yield Talk(sample.sample_id, tuple(turns), tuple(queries))


def longmemeval(path: Path) -> Iterator[Talk]:
    """The instances of LongMemEval, each with its haystack. Raises AdapterError, OSError."""
    for each in _read(path, TypeAdapter(tuple[_LongMemEval, ...])):
        turns: list[Turn] = []
        evidence: list[str] = []
        for session, messages in enumerate(each.haystack_sessions):
            for place, message in enumerate(messages):
                turns.append(Turn(f"{session}:{place}", message.role, message.content))
                if message.has_answer:
                    evidence.append(f"{session}:{place}")
        is_update = each.question_type == "knowledge-update"
        query = Query(
            each.question_id,
            each.question_type,
            each.question,
            str(each.answer),
            tuple(evidence),
            tuple(evidence[:-1]) if is_update else (),
        )
        yield Talk(each.question_id, tuple(turns), (query,))


def beam(path: Path) -> Iterator[Talk]:
    """The conversations of BEAM below a folder: each a `chat.json` with its probing questions.

    Raises AdapterError, OSError.
    """
    chats = sorted(path.rglob("chat.json"))
    if not chats:
        raise AdapterError(f"{path}: there is no chat.json below this folder")
    for chat in chats:
        name = chat.parent.relative_to(path).as_posix() if chat.parent != path else path.name
        batches = _read(chat, TypeAdapter(tuple[_BeamBatch, ...]))
        messages = [turn for batch in batches for group in batch.turns for turn in group]
        asked = chat.parent / "probing_questions" / "probing_questions.json"
        by_ability = _read(asked, TypeAdapter(dict[str, tuple[_BeamQuestion, ...]]))
        yield Talk(
            name.replace("/", "-"),
            tuple(Turn(str(each.id), each.role, each.content) for each in messages),
            tuple(
                _beam_query(f"{name} {ability} {place}", ability, question)
                for ability, questions in by_ability.items()
                for place, question in enumerate(questions)
            ),
        )


def _beam_query(id_: str, ability: str, asked: _BeamQuestion) -> Query:
    sources = asked.source_chat_ids
    revised = sources.get("original_info", ()) if isinstance(sources, Mapping) else ()
    answer = asked.answer or asked.ideal_answer or asked.ideal_response or ""
    evidence = tuple(dict.fromkeys(map(str, _numbers(sources))))
    return Query(id_, ability, asked.question, answer, evidence, tuple(map(str, _numbers(revised))))


def _numbers(listed: Any) -> Iterator[int]:
    """The ids in a list, or in the lists of an object."""
    if isinstance(listed, int):
        yield listed
        return
    inner: Iterable[Any] = listed.values() if isinstance(listed, Mapping) else listed
    for each in inner:
        yield from _numbers(each)


def _spoken(stored: Any, place: str) -> Turn:
    try:
        each = _Spoken.model_validate(stored)
    except ValidationError as invalid:
        raise AdapterError(f"{place}: {invalid.errors()[0]['msg']}") from invalid
    caption = "" if each.blip_caption is None else f" [shares a picture: {each.blip_caption}]"
    return Turn(each.dia_id, each.speaker, each.text + caption)


def _read(path: Path, shape: TypeAdapter[Any]) -> Any:
    """A JSON file of a shape. Raises AdapterError that names the file and the field."""
    try:
        return shape.validate_python(decode_json(path.read_bytes()), strict=False)
    except WireError as invalid:
        raise AdapterError(f"{path}: {invalid}") from invalid
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise AdapterError(f"{path}: {field}: {first['msg']}") from invalid
