"""The port of the HTTP server on a worker's own parts: lanes, the store, epochs, owners."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from processor.app.conversations import ConversationsOfWorker, Elsewhere, Ours
from processor.app.dispatcher import Dispatcher, Kind, Lane, Limits
from processor.app.folded_utterances import FoldedUtterances
from processor.app.interpret import Unusable, interpret
from processor.app.interpret_agent import InterpretAgent
from processor.app.local_store import LocalStore
from processor.app.messages import OPERATIONS, Delivered, log_message
from processor.app.progress import EpochEnded, FoldProgress
from processor.app.reduce_agent import ReduceAgent
from processor.engine.conversation import Conversation
from processor.engine.snapshot import capture
from processor.evidence.key import key_of
from processor.evidence.projection import Kept
from processor.interpreter.port import Interpreted, Interpreter, Reading, Unreadable
from schemas.derived import VerdictEvent
from schemas.log import Interpretation, LogEvent, OperationsAppended
from schemas.utterance import CandidateClaim, Utterance
from schemas.wire import decode_utterance
from tests.web.fake import AT, observe, run, statement

HOME = "http://home:80"
PEER = "http://peer:80"
OWNER = Ours(0, 0)


def said(*arguments: Any, **fields: Any) -> Utterance:
    """A statement of acme/c1."""
    return decode_utterance(orjson.dumps(statement(*arguments, **fields)))


def draft(id_: str, *claims: dict[str, Any], text: str = "") -> Utterance:
    """A draft in acme/c1."""
    return decode_utterance(
        orjson.dumps(
            {
                "tenant_id": "acme",
                "conversation_id": "c1",
                "utterance_id": id_,
                "speaker": "bot",
                "at": AT,
                "kind": "candidate",
                "claims": claims,
                "text": text,
            }
        )
    )


class Bench:
    """A worker without a broker: what is appended is folded, after what others append first."""

    def __init__(self, store: LocalStore, interpreter: Interpreter | None) -> None:
        self.assigned: dict[int, bool] | None = {0: True}
        self.told: str | None = None
        self.answers = True
        self.before: list[Callable[[Conversation], LogEvent]] = []
        self.may_append = asyncio.Event()
        self.may_append.set()
        self.events: list[LogEvent] = []
        self.store = store
        self.progress = FoldProgress()
        folded = FoldedUtterances()
        self._reduce = ReduceAgent(store, self.progress, tell=folded.tell)
        self.crashes: list[BaseException] = []
        self.dispatcher = Dispatcher(
            dict.fromkeys(Kind, Limits(4, 4)), on_crash=self.crashes.append
        )
        self.interpret = InterpretAgent(log=self, dead_letters=self, interpreter=interpreter)
        self.port = ConversationsOfWorker(
            host=self,
            store=store,
            progress=self.progress,
            interpret=self.interpret,
            dispatcher=self.dispatcher,
            folded=folded,
            address=HOME,
            peers=frozenset({PEER, HOME}),
        )

    def assignment(self) -> Mapping[int, bool] | None:
        """As it was set."""
        return self.assigned

    def partition_of(self, key: bytes) -> int:
        """There is one."""
        return 0

    def address_of(self, partition: int) -> str | None:
        """As it was set."""
        return self.told

    def consumer_runs(self) -> bool:
        """It does."""
        return True

    def endpoint_answers(self) -> bool:
        """As it was set."""
        return self.answers

    async def conversation(self, partition: int, tenant: str, conversation: str) -> Conversation:
        """From the store."""
        return await self.store.conversation(tenant, conversation)

    async def append(self, partition: int, event: LogEvent) -> int:
        """Behind what another writer appends first."""
        await self.may_append.wait()
        if self.before:
            here = await self.store.conversation(event.tenant_id, event.conversation_id)
            await self._fold(self.before.pop(0)(here))
        await self._fold(event)
        return len(self.events) - 1

    async def _fold(self, event: LogEvent) -> None:
        message = log_message(event, 0)
        self.events.append(event)
        delivered = Delivered(OPERATIONS, 0, len(self.events) - 1, message.key, message.value)
        await self._reduce.fold(delivered)

    async def folded(self, partition: int, offset: int) -> None:
        """It was folded at once."""

    async def write(self, message: Delivered, letter: Unusable, attempts: int) -> None:
        """Nothing here is a dead letter."""
        raise AssertionError(letter)

    async def say(self, *utterances: Utterance) -> None:
        """Append without HTTP."""
        for each in utterances:
            assert await self.interpret.append(0, each) is None

    async def rebalance(self) -> None:
        """What a worker does when its partitions are revoked, and then assigned again."""
        self.progress.new_epoch()
        self.assigned = None
        self.port.new_epoch()
        self.store.forget_conversations()
        await self.dispatcher.cancel()
        self.assigned = {0: True}


@asynccontextmanager
async def bench(path: Path, interpreter: Interpreter | None = None) -> AsyncIterator[Bench]:
    """A worker's parts on a store of their own."""
    async with LocalStore(path / "store.duckdb", 1_000) as store:
        here = Bench(store, interpreter)
        yield here
        await here.dispatcher.idle()
        assert here.crashes == []


def test_the_age_of_the_oldest_draft_that_waits_is_told(tmp_path: Path) -> None:
    """It grows while the draft is not folded, and there is none before and after."""

    async def main() -> None:
        async with bench(tmp_path) as here:
            await here.say(said("u", observe("o1")))
            assert here.port.oldest_asked_s() == 0
            here.may_append.clear()
            appended = here.port.append(OWNER, draft("d", {"record": "o1"}))
            await asyncio.sleep(0.2)
            assert here.port.oldest_asked_s() >= 0.2
            here.may_append.set()
            await appended
            await asyncio.sleep(0)
            assert here.port.oldest_asked_s() == 0

    run(main())


def test_a_draft_is_appended_behind_what_took_its_sequence_number(tmp_path: Path) -> None:
    """Another writer was quicker, so the same draft is appended again, and folded once."""

    def other(conversation: Conversation) -> LogEvent:
        event = interpret(conversation, said("v", observe("o2")))
        assert isinstance(event, OperationsAppended)
        return event

    async def main() -> None:
        async with bench(tmp_path) as here:
            await here.say(said("u1", observe("o1")))
            here.before.append(other)
            with here.port.watching("acme", "c1", "d1") as folded:
                appended = here.port.append(OWNER, draft("d1", {"record": "o2"}))
                event, derived = (await folded)[:2]
                assert await appended is None
            assert (event.sequence, [each.utterance.id for each in here.events]) == (
                3,
                ["u1", "v", "d1", "d1"],
            )
            verdict = derived[0]
            assert isinstance(verdict, VerdictEvent)
            assert verdict.outcome == "grounded"
            recorded = await here.port.recorded("acme", "c1", "d1")
            assert recorded is not None
            assert recorded[:2] == (event, derived)
            assert event.utterance.topic is None

    run(main())


def test_a_draft_waits_its_turn_behind_what_was_said(tmp_path: Path) -> None:
    """It enters the lane of its conversation, so it sees what came before it."""

    async def main() -> None:
        async with bench(tmp_path) as here:
            await here.say(said("u1", observe("o1")))
            here.may_append.clear()

            async def job() -> None:
                await here.say(said("u2", observe("o2")))

            here.dispatcher.submit(Lane(0, "acme", "c1"), Kind.WORK, job)
            appended = here.port.append(OWNER, draft("d1", {"record": "o2"}))
            await asyncio.sleep(0.05)
            assert not appended.done()
            here.may_append.set()
            assert await appended is None
            assert [each.utterance.id for each in here.events] == ["u1", "u2", "d1"]

    run(main())


def test_a_rebalance_ends_what_waits_and_what_has_not_begun(tmp_path: Path) -> None:
    """Whoever waits hears of it, nothing is appended afterwards, and an old owner is refused."""

    async def main() -> None:
        async with bench(tmp_path) as here:
            await here.say(said("u1", observe("o1")))
            here.may_append.clear()
            running, waiting = (here.port.append(OWNER, draft(each)) for each in ("d1", "d2"))
            with here.port.watching("acme", "c1", "u9") as watched:
                await asyncio.sleep(0)
                await here.rebalance()
                for each in (running, waiting, watched):
                    with pytest.raises(EpochEnded):
                        await each
            here.may_append.set()
            await asyncio.sleep(0.05)
            assert len(here.events) == 1
            with pytest.raises(EpochEnded):
                here.port.append(OWNER, draft("d3"))
            with pytest.raises(EpochEnded):
                await here.port.find(OWNER, "acme", "c1")
            owner = here.port.owner_of("acme", "c1")
            assert owner == Ours(0, 1)
            assert await here.port.append(Ours(0, 1), draft("d1")) is None

    run(main())


def test_only_the_owner_and_listed_peers_are_asked(tmp_path: Path) -> None:
    """Nobody is, in a rebalance, in a recovery, or if the group names an address not listed."""

    async def main() -> None:
        async with bench(tmp_path) as here:
            assert here.port.owner_of("acme", "c1") == OWNER
            here.assigned = {0: False}
            assert here.port.owner_of("acme", "c1") is None
            here.assigned = None
            here.told = PEER
            assert here.port.owner_of("acme", "c1") is None
            here.assigned = {}
            assert here.port.owner_of("acme", "c1") == Elsewhere(PEER)
            here.told = "http://PEER"
            assert here.port.owner_of("acme", "c1") == Elsewhere(PEER)
            for other in (None, HOME, "http://evil:80", "peer:80", "file:///etc/passwd"):
                here.told = other
                assert here.port.owner_of("acme", "c1") is None

    run(main())


def test_readiness_says_what_is_amiss(tmp_path: Path) -> None:
    """A worker to which the group gave nothing is ready too: it sends requests on."""

    async def main() -> None:
        async with bench(tmp_path) as here:
            assert here.port.readiness().ready
            here.assigned = {}
            assert here.port.readiness().ready
            here.assigned = {0: True, 1: False}
            assert (here.port.readiness().ready, here.port.readiness().recovered) == (False, False)
            here.assigned = None
            assert (here.port.readiness().assigned, here.port.readiness().recovered) == (
                False,
                False,
            )
            here.assigned, here.answers = {}, False
            assert (here.port.readiness().ready, here.port.readiness().endpoint) == (False, False)
        assert not here.port.readiness().store_open

    run(main())


def test_what_was_folded_just_now_is_seen_as_of_any_turn(tmp_path: Path) -> None:
    """Views read the file, behind what waits to be written to it."""

    async def main() -> None:
        async with bench(tmp_path) as here:
            for turn in range(1, 6):
                await here.say(said(f"u{turn}", observe(f"o{turn}")))
                for seen in (None, *range(1, turn + 1)):
                    count = await here.port.copied(
                        "acme", "c1", seen, lambda copy: len(copy.state.records)
                    )
                    assert count == (turn if seen is None else seen)
            assert await here.port.copied("acme", "c1", 6, lambda copy: copy.turn) is None
            assert await here.port.copied("acme", "c2", None, lambda copy: copy.turn) is None

    run(main())


def test_a_copy_is_nobody_elses(tmp_path: Path) -> None:
    """What a view does to it changes neither the live conversation nor the next copy."""

    async def main() -> None:
        async with bench(tmp_path) as here:
            await here.say(said("u1", observe("o1")))
            await here.port.copied("acme", "c1", None, lambda copy: copy.state.records.clear())
            live = await here.port.find(OWNER, "acme", "c1")
            assert live is not None
            assert list(live.state.records) == ["o1"]
            assert await here.port.copied("acme", "c1", None, lambda copy: copy.turn) == 1

    run(main())


def test_whoever_waited_for_a_conversation_with_a_fold_is_given_it_after_the_fold(
    tmp_path: Path,
) -> None:
    """Both wait for one reading from the disk; the one that changes it is not looked over."""

    async def main() -> None:
        async with bench(tmp_path) as here:
            await here.say(said("u1", observe("o1")))
            await here.store.flush()
            here.store.forget_conversations()
            is_begun, may_end = asyncio.Event(), threading.Event()
            loop = asyncio.get_running_loop()

            def change() -> None:
                loop.call_soon_threadsafe(is_begun.set)
                assert may_end.wait(30)

            async def fold() -> None:
                conversation = await here.store.conversation("acme", "c1")
                await here.store.apart(conversation, change)

            folding = asyncio.create_task(fold())
            asking = asyncio.create_task(here.store.conversation("acme", "c1"))
            await is_begun.wait()
            done, _ = await asyncio.wait([asking], timeout=0.1)
            may_end.set()
            await folding
            assert (await asking).sequence == 1
            assert not done

    run(main())


@pytest.mark.parametrize("has_left_memory", [False, True])
def test_a_conversation_comes_from_the_disk_with_its_ledger(
    tmp_path: Path, has_left_memory: bool
) -> None:
    """What its next turn and its memory need is made by the thread that reads it."""
    atom = {"entity": "pool", "attribute": "timeout", "value": "30 s"}

    async def main() -> None:
        async with bench(tmp_path) as here:
            await here.say(said("u1", {**observe("o1"), "atoms": [atom]}))
            captured = capture(await here.store.conversation("acme", "c1"))
            await here.store.flush()
            here.store.forget_conversations()
            if has_left_memory:
                here.store._thread.submit(here.store._evicted.put, "acme/c1", captured)
            kept = (await here.store.conversation("acme", "c1")).projection
            assert isinstance(kept, Kept)
            assert (kept.turn, list(kept.ledger.rows)) == (1, [key_of("pool", "timeout")])

    run(main())


def test_a_conversation_that_is_asked_for_in_vain_takes_no_memory(tmp_path: Path) -> None:
    """Whoever asks for many that do not exist pushes nothing out."""

    async def main() -> None:
        async with bench(tmp_path) as here:
            await here.say(said("u1", observe("o1")))
            for each in range(50):
                assert await here.port.find(OWNER, "acme", f"x{each}") is None
            assert "acme/c1" in here.store._held
            assert len(here.store._held) == 1
            await here.store.flush()
            here.store.forget_conversations()
            assert await here.port.find(OWNER, "acme", "c1") is not None

    run(main())


class Associating:
    """An interpreter that knows on what some words rest."""

    def __init__(self, **known: Interpreted) -> None:
        self.known = known
        self.asked: list[tuple[str, str]] = []

    async def interpret(self, conversation: Any, utterance: Utterance, refused: Any) -> Interpreted:
        """By the words."""
        assert utterance.claims is None
        self.asked.append((utterance.utterance_id, utterance.text))
        return self.known[utterance.text]


MODEL = Interpretation(interpreter="scripted", attempts=1, tokens_in=5, tokens_out=2)


def test_claims_in_words_are_read_one_by_one(tmp_path: Path) -> None:
    """None, one or several take the place of each; those that name records are not read."""
    model = Associating(
        nothing=Reading(MODEL, claims=()),
        one=Reading(MODEL, claims=(CandidateClaim(text="1", record="o1"),)),
        two=Reading(MODEL, claims=(CandidateClaim(text="2"), CandidateClaim(text="3"))),
        noise=Unreadable(MODEL, "no JSON"),
    )
    claims = [{"text": each} for each in ("nothing", "one", "two", "noise")]

    async def main() -> None:
        async with bench(tmp_path, model) as here:
            await here.say(said("u1", observe("o1")))
            asked = draft("d1", *claims, {"text": "named", "record": "o1"})
            assert await here.port.append(OWNER, asked) is None
            assert await here.port.append(OWNER, asked) is None
            found = await here.port.recorded("acme", "c1", "d1")
            assert found is not None
            texts = [(each.text, each.record) for each in found.event.claims]  # type: ignore[union-attr]
            assert texts == [
                ("1", "o1"),
                ("2", None),
                ("3", None),
                ("noise", None),
                ("named", "o1"),
            ]
            assert found.event.provenance.tokens_in == 20
            assert [text for _, text in model.asked] == ["nothing", "one", "two", "noise"]
            reading = await here.port.read(OWNER, draft("d2", {"text": "one"}))
            assert isinstance(reading, Reading)
            assert reading.claims == (CandidateClaim(text="1", record="o1"),)

    run(main())


def test_a_reading_that_nobody_waits_for_is_not_made(tmp_path: Path) -> None:
    """A request that ran out of time in the lane costs no call."""
    model = Associating()

    async def main() -> None:
        async with bench(tmp_path, model) as here:
            await here.say(said("u1", observe("o1")))
            reading = here.port.read(OWNER, draft("d1", {"text": "one"}))
            reading.cancel()
            await here.dispatcher.idle()
            assert model.asked == []

    run(main())
