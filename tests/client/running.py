"""A real worker on Apache Kafka, and the client that asks it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

from processor.client import Guard
from tests.faults.gates import LINE, TOKEN, addresses, gated
from tests.kafka.fixtures import delete_topics
from tests.pipeline.workers import make_topics, say
from tests.web.fake import write_tokens

SECONDS = 60.0


class Running(NamedTuple):
    """A broker, and how to have a worker on it."""

    bootstrap: str
    folder: Path
    address: str

    def worker(self) -> Any:
        """A worker that ends with the block; always with the same store and address."""
        return gated(self.bootstrap, self.folder / "w.duckdb", self.address, [])

    def say(self, conversation: str, *utterances: dict[str, Any]) -> None:
        """Publish what is said in a conversation."""
        say(self.bootstrap, [each | {"conversation_id": conversation} for each in utterances])

    def guard(self, **settings: Any) -> Guard:
        """Asks this worker."""
        given = {"fail": "closed", "seconds": SECONDS, **settings}
        return Guard(self.address, "acme", TOKEN, **given)


def prepared(bootstrap: str, folder: Path) -> Running:
    """New topics, and no worker yet."""
    asyncio.run(delete_topics(bootstrap))
    make_topics(bootstrap)
    write_tokens(folder / "tokens", LINE)
    (address,) = addresses(1)
    return Running(bootstrap, folder, address)
