"""A worker whose interpreter reads the operations that stand in an utterance's text, or fails.

`python -m tests.archive.scripted_worker BOOTSTRAP STORE fails|reads`: the first way, texts that
hold the word "hard" cannot be read.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import orjson

from processor.app.local_store import LocalStore
from processor.app.logs import configure_logs
from processor.app.sender import Sender
from processor.app.settings import KafkaSettings, worker_settings
from processor.app.worker import Worker
from processor.engine.conversation import Conversation
from processor.interpreter.port import Interpreted, Reading, Refused, Unreadable
from schemas.log import Interpretation
from schemas.utterance import Utterance
from schemas.wire import decode_utterance

PROVENANCE = Interpretation(interpreter="scripted", attempts=1, tokens_in=7)


class FromText:
    """Reads `text` as a JSON list of operations."""

    def __init__(self, fails: bool) -> None:
        self._fails = fails

    async def interpret(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """What the text says."""
        if self._fails and "hard" in utterance.text:
            return Unreadable(PROVENANCE, "too hard")
        said = {
            **{"conversation_id": "c", "utterance_id": "u", "speaker": "a"},
            "at": "2026-03-01T02:31:00Z",
            "operations": orjson.loads(utterance.text),
        }
        return Reading(PROVENANCE, decode_utterance(orjson.dumps(said)).operations or ())


async def serve(bootstrap: str, store: Path, fails: bool) -> None:
    """Work until SIGTERM."""
    configure_logs()
    kafka = KafkaSettings(bootstrap=bootstrap)
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    async with AsyncExitStack() as stack:
        kept = await stack.enter_async_context(LocalStore(store, 10_000))
        sender = await stack.enter_async_context(Sender(kafka.client_options()))
        worker = Worker(worker_settings({}), kafka, kept, sender, FromText(fails))
        await worker.start()
        sys.stdout.write("started\n")
        sys.stdout.flush()
        waiting = asyncio.create_task(asked.wait())
        await asyncio.wait([waiting, worker.failed], return_when=asyncio.FIRST_COMPLETED)
        await worker.drain()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "fails"))
