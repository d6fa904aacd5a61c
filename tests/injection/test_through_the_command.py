"""The whole corpus through the one command, with the real prompts and a server that obeys."""

from __future__ import annotations

import subprocess
import sys

import orjson
import pytest

from processor.engine.conversation import Conversation
from replay.store import Store
from tests.injection.corpus import CORPUS, OBSERVED, Json, told_before
from tests.interpreter.scripted_endpoint import KEY, MODEL, Said, ScriptedEndpoint

_COMMAND = ("run", "-", "--interpreter", "openai", "--json")
BESIDE = ("acme", "beside")


def obeying(body: Json) -> Said:
    """The reply that the corpus has for the text, which stands on one line of the prompt."""
    lines = [line for message in body["messages"] for line in message["content"].split("\n")]
    (said,) = [line for line in lines if line.startswith('{"speaker": "')]
    text = orjson.loads(said)["text"]
    (case,) = [case for case in CORPUS if case["text"] == text]
    return Said(orjson.dumps(case["reply"]).decode())


def lines() -> list[Json]:
    """For each case a plant of its own, and the attempt there; one plant that nobody attacks."""
    said = [{**each, "utterance_id": f"b{n}"} for n, each in enumerate(told_before(BESIDE))]
    for number, case in enumerate(CORPUS):
        key = ("acme", f"plant-{number}")
        said += [{**each, "utterance_id": f"b{n}"} for n, each in enumerate(told_before(key))]
        kind = "candidate" if "claims" in case["reply"] else "statement"
        words = {name: case[name] for name in ("speaker", "role", "text")}
        place = {"tenant_id": key[0], "conversation_id": key[1], "utterance_id": "attempt"}
        said.append({**place, **words, "kind": kind, "at": "2026-03-01T02:31:00Z"})
    return said


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Conversation]:
    """Every conversation after the run, by its id."""
    folder = tmp_path_factory.mktemp("attacked")
    with ScriptedEndpoint(always=obeying) as endpoint:
        ran = subprocess.run(
            [sys.executable, "-m", "processor.cli.main", *_COMMAND, "--out", folder],
            input=b"\n".join(map(orjson.dumps, lines())),
            env={
                "OPENAI_BASE_URL": endpoint.url,
                "OPENAI_API_KEY": KEY,
                "STANDFAST_INTERPRETER_MODEL": MODEL,
                "PYTHONPATH": ":".join(sys.path),
            },
            capture_output=True,
            check=False,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stderr.decode()
        assert len(endpoint.asked) >= len(CORPUS)
    with Store(folder / "standfast.duckdb", read_only=True) as store:
        found = {
            place: store.conversation("acme", place)
            for place in ("beside", *(f"plant-{number}" for number in range(len(CORPUS))))
        }
    return {place: each for place, each in found.items() if each is not None}


def test_every_attempt_is_in_its_log(ended: dict[str, Conversation]) -> None:
    """Each conversation has the statements of before and the attempt, and no other."""
    assert len(ended) == len(CORPUS) + 1
    before = ended["beside"].sequence
    assert {each.sequence for place, each in ended.items() if place != "beside"} == {before + 1}


def test_no_attempt_withdraws_what_was_observed(ended: dict[str, Conversation]) -> None:
    """Wherever an obedient model was told to, the observations stand and are grounded."""
    fallen = [
        (place, id_)
        for place, conversation in ended.items()
        for id_ in OBSERVED
        if not conversation.state.records[id_].grounded
    ]
    assert fallen == []


def test_the_conversation_beside_them_holds_what_was_said_there(
    ended: dict[str, Conversation],
) -> None:
    """No attempt has left a record, a question or a word in it."""
    state = ended["beside"].state
    assert list(state.records) == ["o1", "o2", "v1", "e1", "s1", "a1", "h1", "d1"]
    assert not state.problems
