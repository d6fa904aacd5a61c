"""A fold that takes long leaves the event loop to the others, and nobody sees its middle."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import orjson
import pytest

from processor.app import reduce_agent
from processor.app.interpret import interpret
from processor.app.local_store import LocalStore
from processor.app.messages import OPERATIONS, Delivered, log_message
from processor.app.progress import EpochEnded, FoldProgress
from processor.app.reduce_agent import HEAVY_BYTES, ReduceAgent, is_heavy
from processor.engine.conversation import Conversation
from processor.engine.snapshot import dump
from processor.render.reduce import reduce
from schemas.log import OperationsAppended
from schemas.wire import decode_utterance
from tests.faults.test_input import utterance

Answer = TypeVar("Answer")
WAIT_S = 60.0
IDS = ("acme", "c")


def heavy_message() -> Delivered:
    """An event that brings many values of one key."""
    atoms = [{"entity": "e", "attribute": "a", "value": f"v{n}"} for n in range(60)]
    said = {"op": "observe", "claim": "c", "atoms": atoms}
    operations = [{**said, "record": f"r{n}"} for n in range(5)]
    line = orjson.dumps(utterance("u1", operations=operations))
    event = interpret(Conversation.empty(*IDS), decode_utterance(line))
    assert isinstance(event, OperationsAppended)
    message = log_message(event, 0)
    return Delivered(OPERATIONS, 0, 0, message.key, message.value)


class Gate:
    """Holds a fold up, in whichever thread it is, until it is let on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.let_on = threading.Event(), threading.Event()
        monkeypatch.setattr(reduce_agent, "reduce", self._held_up(reduce))

    def _held_up(self, work: Callable[..., Answer]) -> Callable[..., Answer]:
        def held_up(*given: object) -> Answer:
            done = work(*given)
            self.begun.set()
            assert self.let_on.wait(WAIT_S), "the event loop waits for the fold"
            return done

        return held_up

    async def has_begun(self) -> None:
        """Return when the fold is in its middle; the loop runs, or this would not."""
        while not self.begun.is_set():
            await asyncio.sleep(0.01)


def test_what_is_large_or_has_formulas_is_heavy() -> None:
    """An ordinary event of an ordinary conversation is not: another thread costs it more."""
    conversation = Conversation.empty(*IDS)
    plain = interpret(conversation, decode_utterance(orjson.dumps(utterance("u0"))))
    assert isinstance(plain, OperationsAppended)
    reduce(conversation, plain)
    assert not is_heavy(conversation, Delivered(OPERATIONS, 0, 0, b"", b"x" * HEAVY_BYTES))
    assert is_heavy(conversation, heavy_message())
    formula = {"op": "observe", "record": "o", "claim": "c", "formula": "p"}
    event = interpret(
        conversation, decode_utterance(orjson.dumps(utterance("u1", operations=[formula])))
    )
    assert isinstance(event, OperationsAppended)
    reduce(conversation, event)
    assert is_heavy(conversation, Delivered(OPERATIONS, 0, 0, b"", b""))


def test_the_loop_runs_and_nobody_is_given_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks meanwhile gets it folded; it does not leave memory, however little there is."""
    gate, message = Gate(monkeypatch), heavy_message()

    async def main() -> None:
        async with LocalStore(tmp_path / "worker.duckdb", records_max=1) as store:
            progress = FoldProgress()
            folding = asyncio.create_task(ReduceAgent(store, progress).fold(message))
            await gate.has_begun()
            asked = [
                asyncio.create_task(store.conversation(*IDS)),
                asyncio.create_task(store.find(*IDS)),
            ]
            for name in ("d", "e"):  # there is no room for two
                await store.conversation("acme", name)
            assert not any(each.done() for each in asked)
            assert progress.next_offset(0) == 0
            gate.let_on.set()
            folded = await folding
            assert folded is not None
            one, other = await asyncio.gather(*asked)
            assert one is other
            assert one is not None
            assert one.sequence == 1
            expected = Conversation.empty(*IDS)
            reduce(expected, folded.event)
            assert dump(one) == dump(expected)
            assert progress.next_offset(0) == 1

    asyncio.run(main())


def test_a_rebalance_meanwhile_leaves_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was folded belongs to nobody; the conversation is read again as it was before."""
    gate, message = Gate(monkeypatch), heavy_message()

    async def main() -> None:
        async with LocalStore(tmp_path / "worker.duckdb", records_max=1_000) as store:
            progress = FoldProgress()
            folding = asyncio.create_task(ReduceAgent(store, progress).fold(message))
            await gate.has_begun()
            progress.new_epoch()
            store.forget_conversations()
            gate.let_on.set()
            with pytest.raises(EpochEnded):
                await folding
            assert (await store.conversation(*IDS)).sequence == 0

    asyncio.run(main())
