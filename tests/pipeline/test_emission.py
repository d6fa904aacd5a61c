"""What is folded in one turn of the event loop is emitted together, each event for itself."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from opentelemetry.sdk.trace import TracerProvider

from processor.app.agents import Agents
from processor.app.assignment import Assignment
from processor.app.fetched import Damage, Problem
from processor.app.intake import Intake
from processor.app.messages import OPERATIONS, UTTERANCES, Delivered, Outgoing
from processor.app.reduce_agent import Folded, PartitionStopped
from processor.app.sender import Begun
from processor.app.tracing import Tracing
from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused
from processor.render.reduce import reduce
from tests.pipeline.test_intake import Flow
from tests.properties.engine_driver import next_event

TRACES = [f"{number:032x}" for number in (1, 2, 3, 4)]


class Broker:
    """A sender that notes what was begun; a topic takes no message of the second conversation."""

    def __init__(self, acked: list[int]) -> None:
        self.begun: list[Outgoing] = []
        self.letters: list[tuple[int, bytes | None]] = []
        self._acked = acked
        self.is_there = asyncio.Event()

    async def begin_all(self, messages: list[Outgoing]) -> Begun:
        """Take them, or not."""
        self.begun += messages
        return Begun([], [each for each in messages if each.key == b"default/c1"])

    async def confirmed_all(self, begun: Begun) -> list[Outgoing]:
        """Wait for the broker."""
        await self.is_there.wait()
        return begun.too_large

    async def write(self, message: Delivered, _: object, __: int) -> None:
        """Note a dead letter, of an event that is not acknowledged yet."""
        assert message.offset not in self._acked
        self.letters.append((message.offset, message.key))


def folded(number: int) -> Folded:
    """An observation in a conversation of its own."""
    conversation = Conversation.empty("default", f"c{number}")
    said = {
        "conversation_id": f"c{number}",
        "utterance_id": "u",
        "speaker": "ann",
        "text": "",
        "at": "2026-03-01T02:31:00Z",
        "operations": [{"op": "observe", "record": "o", "claim": "o"}],
    }
    event = next_event(conversation, said)
    assert event is not None
    reduced = reduce(conversation, event)
    assert not isinstance(reduced, Refused)
    return Folded(event, reduced)


def arriving(number: int) -> Delivered:
    """The message of that event, in a trace of its own."""
    trace = f"00-{TRACES[number]}-{'b' * 16}-01".encode()
    return Delivered(OPERATIONS, 0, number, b"", b"", (("traceparent", trace),))


def agents_with(**parts: Any) -> Agents:
    """Agents of which a test uses some parts."""
    other: Any = SimpleNamespace(alert_tenants=frozenset(), log_claims=False)
    names = ("settings", "dispatcher", "interpret", "reduce", "log", "in_background")
    unused = dict.fromkeys((*names, "on_stopped", "on_failure"), other)
    given = {"intake": Intake(Flow(), in_hand_max=10), "assignment": Assignment()}
    return Agents(**unused | given | parts)


def test_each_event_of_a_batch_has_its_trace_its_letters_and_its_acknowledgement() -> None:
    """One task emits all three in order, and acknowledges none before the broker has it."""

    async def main() -> None:
        flow = Flow()
        acked = flow.acked
        broker = Broker(acked)

        async def fold(message: Delivered) -> Folded:
            return folded(message.offset)

        tasks: list[asyncio.Task[None]] = []
        log: Any = SimpleNamespace(
            sender=broker,
            tracing=Tracing(TracerProvider()),
            write=broker.write,
            metrics=SimpleNamespace(emitted=lambda _, __: None),
        )
        agents = agents_with(
            reduce=SimpleNamespace(fold=fold),
            log=log,
            intake=Intake(flow, in_hand_max=10),
            in_background=lambda work: tasks.append(asyncio.create_task(work)),
        )
        for number in range(3):
            await agents.take_event(arriving(number))
        assert len(tasks) == 1
        await asyncio.sleep(0)
        traces = [dict(each.headers)["traceparent"].decode()[3:35] for each in broker.begun]
        assert list(dict.fromkeys(traces)) == TRACES[:3]
        keys = [each.key for each in broker.begun]
        assert list(dict.fromkeys(keys)) == [b"default/c0", b"default/c1", b"default/c2"]
        assert acked == []
        broker.is_there.set()
        await tasks[0]
        assert acked == [0, 1, 2]
        assert {offset for offset, _ in broker.letters} == {1}
        await agents.take_event(arriving(3))
        await tasks[1]
        assert acked == [0, 1, 2, 3]

    asyncio.run(main())


def test_a_stop_is_told_once_however_often_its_cause_is_delivered() -> None:
    """Damage is never acknowledged, so it comes again; another partition's is told as well."""

    async def main() -> None:
        assignment = Assignment()
        assignment.begin([0, 1])
        told: list[int] = []

        def stop(stopped: PartitionStopped) -> None:
            assignment.stop(stopped.partition)
            told.append(stopped.partition)

        agents = agents_with(assignment=assignment, on_stopped=stop)
        for partition in (0, 0, 1, 0):
            damaged = ((Problem.NAME, Damage(b"damaged")),)
            await agents.take_utterance(Delivered(UTTERANCES, partition, 0, b"", b"", damaged))
        assert told == [0, 1]

    asyncio.run(main())
