"""Workers with a gate, on Apache Kafka, and a client that asks them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import orjson

from processor.app.messages import OPERATIONS
from processor.app.partitions import partition_of
from processor.app.web.tokens import TokenLine
from tests.kafka.cluster import HOST, free_ports
from tests.pipeline.workers import PARTITIONS, read, running_worker, say
from tests.waiting import wait_until
from tests.web.fake import statement, token_for, write_tokens

TOKEN, LINE = token_for("acme")


class Answer(NamedTuple):
    """What a worker answered; status 0 if it could not be reached."""

    status: int
    said: Any
    headers: dict[str, str]


@dataclass
class Gated:
    """One worker and its address."""

    address: str
    process: subprocess.Popen | None = None

    def ask(
        self, path: str, token: str | None, body: Any = None, method: str | None = None
    ) -> Answer:
        """GET, or POST if there is a body, unless the method is said."""
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else orjson.dumps(body)
        try:
            request = Request(self.address + path, data, headers, method=method)
            with urlopen(request, timeout=60) as response:
                return Answer(
                    response.status, orjson.loads(response.read()), dict(response.headers)
                )
        except HTTPError as refused:
            with refused:
                return Answer(refused.code, orjson.loads(refused.read()), dict(refused.headers))
        except OSError:
            return Answer(0, None, {})

    def is_ready(self) -> bool:
        """Whether it says so."""
        return self.ask("/readyz", None).status == 200


def addresses(count: int) -> list[str]:
    """Free ports of this machine, as addresses."""
    return [f"http://{HOST}:{port}" for port in free_ports(count)]


@contextmanager
def gated(
    bootstrap: str, store: Path, address: str, peers: Sequence[str], **environment: str
) -> Iterator[Gated]:
    """A running worker with a gate; its tokens stand in `tokens` beside its store."""
    settings = {
        "STANDFAST_WORKER_LISTEN_PORT": address.rpartition(":")[2],
        "STANDFAST_WORKER_CANONICAL_URL": address,
        "STANDFAST_WORKER_PEERS": orjson.dumps(list(peers)).decode(),
        "STANDFAST_WORKER_TOKENS": str(store.parent / "tokens"),
        "STANDFAST_WORKER_REQUESTS_PER_SECOND": "10000",
        "STANDFAST_WORKER_REQUESTS_BURST": "10000",
        "STANDFAST_WORKER_WRONG_TOKENS_BURST": "10000",
        **environment,
    }
    with running_worker(bootstrap, store, **settings) as process:
        yield Gated(address, process)


@contextmanager
def two_workers(
    bootstrap: str, folder: Path, *lines: TokenLine, **environment: str
) -> Iterator[list[Gated]]:
    """Two that know each other, and own half of the partitions each."""
    write_tokens(folder / "tokens", *lines)
    peers = addresses(2)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                gated(bootstrap, folder / f"{name}.duckdb", address, peers, **environment)
            )
            for name, address in zip(("one", "other"), peers, strict=True)
        ]
        wait_until(lambda: all(worker.is_ready() for worker in workers))
        yield workers


class Pair(NamedTuple):
    """Two workers, the broker, and where they keep their files."""

    bootstrap: str
    workers: list[Gated]
    folder: Path


def here(conversation: str, tenant: str = "acme") -> str:
    """The path of a conversation."""
    return f"/v1/tenants/{tenant}/conversations/{conversation}"


def check(worker: Gated, conversation: str, *records: str, **fields: Any) -> Answer:
    """Check a draft with one claim for each record."""
    claims = [{"text": f"as {record} says", "record": record} for record in records]
    return worker.ask(f"{here(conversation)}/check", TOKEN, {"claims": claims, **fields})


def tell(pair: Pair, conversation: str, *arguments: Any) -> dict[str, Any]:
    """Publish one utterance."""
    utterance = statement(*arguments, conversation_id=conversation)
    say(pair.bootstrap, [utterance])
    return utterance


def on_every_partition(name: str) -> list[str]:
    """A conversation for each partition, so both workers own some of them."""
    found: dict[int, str] = {}
    for number in range(1_000):
        conversation = f"{name}-{number}"
        found.setdefault(partition_of(f"acme/{conversation}".encode(), PARTITIONS), conversation)
    return list(found.values())


def in_log(bootstrap: str, candidate_id: str) -> int:
    """How often a draft stands in the log."""
    events = [orjson.loads(record.value) for record in read(bootstrap, OPERATIONS)]
    return sum(event["utterance"]["id"] == candidate_id for event in events)
