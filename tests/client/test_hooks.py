"""The hooks with the real frameworks, a scripted model, and a worker that reads what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.client.installed import EXAMPLES, build_wheel, run_example, unpack
from tests.client.software import VENV
from tests.faults.gates import LINE, TOKEN, Gated, addresses, gated
from tests.interpreter.scripted_endpoint import KEY, MODEL, Said, ScriptedEndpoint
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import delete_topics
from tests.pipeline.workers import make_topics, say
from tests.waiting import wait_until
from tests.web.fake import observe, statement, write_tokens

pytestmark = pytest.mark.xdist_group("client_hooks")

STANDS, FELL = "The pool is full.", "Retries fill the pool."
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*_*.py"))


class Hooks(NamedTuple):
    """What a framework's program has around it."""

    endpoint: ScriptedEndpoint
    worker: Gated
    site: Path


@pytest.fixture(scope="module")
def hooks(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooks]:
    """A worker on Apache Kafka that reads text, and one conversation in which a claim fell."""
    folder = tmp_path_factory.mktemp("hooks")
    site = unpack(build_wheel(folder / "dist"), folder / "site")
    asyncio.run(delete_topics(kafka.bootstrap))
    make_topics(kafka.bootstrap)
    write_tokens(folder / "tokens", LINE)
    (address,) = addresses(1)
    with ScriptedEndpoint() as endpoint:
        settings = {
            "OPENAI_BASE_URL": endpoint.url,
            "OPENAI_API_KEY": KEY,
            "STANDFAST_INTERPRETER_KIND": "openai",
            "STANDFAST_INTERPRETER_MODEL": MODEL,
        }
        with gated(kafka.bootstrap, folder / "w.duckdb", address, [], **settings) as worker:
            wait_until(worker.is_ready)
            pool, retries = observe("o1") | {"claim": STANDS}, observe("o2") | {"claim": FELL}
            withdrawn = {"op": "revise", "target": "o2", "by": {"record": "e3", "claim": "No."}}
            said = [statement("u1", pool, retries), statement("u2", withdrawn)]
            say(kafka.bootstrap, [each | {"conversation_id": "inc-7"} for each in said])
            wait_until(lambda: is_folded(worker))
            yield Hooks(endpoint, worker, site)


def is_folded(worker: Gated) -> bool:
    """Whether both utterances are."""
    view = worker.ask("/v1/tenants/acme/conversations/inc-7/state?after=u2&wait_ms=9000", TOKEN)
    return view.status == 200


def run(hooks: Hooks, folder: Path, program: Path | str, words: str) -> str:
    """What a program prints when the model says these words."""
    hooks.endpoint.always = lambda _: Said(words)
    ran = run_example(
        VENV / "bin" / "python",
        folder,
        program,
        hooks.site,
        OPENAI_BASE_URL=hooks.endpoint.url,
        OPENAI_API_KEY=KEY,
        MODEL=MODEL,
        STANDFAST_GATE=hooks.worker.address,
        STANDFAST_TOKEN=TOKEN,
        LITELLM_LOCAL_MODEL_COST_MAP="True",
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_there_is_an_example_for_each_hook() -> None:
    """And no hook without one."""
    assert PROGRAMS == ["langgraph_node", "litellm_callback", "openai_agents_guardrail"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_stands_is_said(hooks: Hooks, tmp_path: Path, program: str) -> None:
    """The example prints what the model said."""
    assert run(hooks, tmp_path, EXAMPLES / f"{program}.py", STANDS) == f"{STANDS}\n"


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_fell_is_held_with_the_reason(hooks: Hooks, tmp_path: Path, program: str) -> None:
    """The example prints why instead of what the model said."""
    printed = run(hooks, tmp_path, EXAMPLES / f"{program}.py", FELL)
    assert printed.startswith("held: ")
    assert f'"{FELL}", o2: ungrounded; o2 is abandoned since turn 2 (revise by e3, ann)' in printed


LITELLM = """
import asyncio, os, litellm
from litellm.exceptions import GuardrailRaisedException
from standfast.client import AsyncGuard
from standfast.client.litellm import StandfastCallback

async def main():
    gate, token = os.environ["STANDFAST_GATE"], os.environ["STANDFAST_TOKEN"]
    async with AsyncGuard(gate, "acme", token, fail="closed", seconds=30) as guard:
        litellm.callbacks = [StandfastCallback(guard)]
        asked = {"messages": [{"role": "user", "content": "?"}], "model": os.environ["MODEL"]}
        said = await litellm.acompletion(**asked, custom_llm_provider="openai")
        print(said.choices[0].message.content)
        inc_7 = {"standfast_conversation": "inc-7"}
        try:
            await litellm.acompletion(
                **asked, custom_llm_provider="openai", stream=True, metadata=inc_7
            )
        except GuardrailRaisedException as held:
            print("held:", held.message)

asyncio.run(main())
"""


def test_litellm_checks_what_it_can_and_no_call_that_names_none(
    hooks: Hooks, tmp_path: Path
) -> None:
    """A call without a conversation passes unchecked, a stream with one is refused."""
    first, second = run(hooks, tmp_path, LITELLM, FELL).splitlines()
    assert first == FELL
    assert second.startswith("held: ")
    assert "a stream is shown before it can be checked" in second
