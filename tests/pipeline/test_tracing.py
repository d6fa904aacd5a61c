"""Traces: from whoever publishes an utterance to whoever reads what came of it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import orjson
import pytest
from aiokafka import AIOKafkaProducer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from processor.app.errors import SettingsError
from processor.app.messages import UTTERANCES
from processor.app.partitions import partition_of
from processor.app.tracing import closing_traces
from tests.faults.gates import addresses, gated
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import (
    PARTITIONS,
    make_topics,
    read,
    running_worker,
    stop,
    wait_until_done,
)
from tests.waiting import wait_until
from tests.web.fake import token_for, write_tokens

OTHER_TRACE = "1bf7651916cd43dd8448eb211c80319d"
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SECRET = "the launch code is 0000"


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """A collector that keeps what it is sent, and where it listens."""
    received: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", received
        finally:
            server.shutdown()
            thread.join()


async def publish(bootstrap: str) -> None:
    """One utterance within the trace of its publisher."""
    said = {
        "tenant_id": "acme",
        "conversation_id": "c",
        "utterance_id": "u1",
        "speaker": "ann",
        "text": SECRET,
        "at": "2026-03-01T02:31:00Z",
        "operations": [{"op": "observe", "record": "o1", "claim": SECRET}],
    }
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(
            UTTERANCES,
            orjson.dumps(said),
            b"acme/c",
            partition_of(b"acme/c", PARTITIONS),
            headers=[("traceparent", f"00-{TRACE}-{SPAN}-01".encode())],
        )


def spans_of(received: list[bytes], trace: str) -> dict[str, Any]:
    """The spans of a trace by their names, of which each is there once."""
    spans = [
        span
        for body in received
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
        if span.trace_id.hex() == trace
    ]
    assert len({span.name for span in spans}) == len(spans)
    return {span.name: span for span in spans}


def test_a_check_is_one_trace_from_the_request_to_its_answer(
    empty_kafka: Kafka, tmp_path: Path
) -> None:
    """The draft's append, fold and verdicts belong to the request, and that to its client's."""
    make_topics(empty_kafka.bootstrap)
    asyncio.run(publish(empty_kafka.bootstrap))
    token, line = token_for("acme")
    write_tokens(tmp_path / "tokens", line)
    (address,) = addresses(1)
    asked = {"claims": [{"text": SECRET, "record": "o1"}], "after": "u1", "wait_ms": 20_000}
    with collector() as (url, received):
        store = tmp_path / "worker.duckdb"
        with gated(
            empty_kafka.bootstrap, store, address, (), OTEL_EXPORTER_OTLP_ENDPOINT=url
        ) as worker:
            wait_until(worker.is_ready)
            request = Request(
                f"{address}/v1/tenants/acme/conversations/c/check",
                orjson.dumps(asked),
                {
                    "Authorization": f"Bearer {token}",
                    "Content-Type": "application/json",
                    "traceparent": f"00-{OTHER_TRACE}-{SPAN}-01",
                },
            )
            with urlopen(request, timeout=60) as response:
                assert orjson.loads(response.read())["recorded"]
            wait_until_done(empty_kafka.bootstrap)
            assert stop(worker.process) == 0
    spans = spans_of(received, OTHER_TRACE)
    check = "POST /v1/tenants/{tenant}/conversations/{conversation}/check"
    assert spans.keys() == {check, "append", "fold", "emit"}
    assert spans[check].parent_span_id.hex() == SPAN
    assert spans["append"].parent_span_id == spans[check].span_id
    for name in ("fold", "emit"):
        assert spans[name].parent_span_id == spans["append"].span_id
    told = {each.key: each.value for each in spans[check].attributes}
    assert told["http.response.status_code"].int_value == 200
    verdict = next(each for each in read(empty_kafka.bootstrap, "verdicts"))
    assert dict(verdict.headers)["traceparent"].decode().split("-")[1] == OTHER_TRACE
    assert not any(SECRET.encode() in body for body in received)


def test_a_trace_goes_through_the_topics(empty_kafka: Kafka, tmp_path: Path) -> None:
    """All spans belong to the publisher's trace, what is emitted carries it on, without text."""
    make_topics(empty_kafka.bootstrap)
    asyncio.run(publish(empty_kafka.bootstrap))
    with collector() as (url, received):
        store = tmp_path / "worker.duckdb"
        with running_worker(
            empty_kafka.bootstrap, store, OTEL_EXPORTER_OTLP_ENDPOINT=url
        ) as worker:
            wait_until_done(empty_kafka.bootstrap)
            assert stop(worker) == 0
    spans = spans_of(received, TRACE)
    assert spans.keys() == {"interpret", "fold", "emit"}
    assert spans["interpret"].parent_span_id.hex() == SPAN
    for name in ("fold", "emit"):
        assert spans[name].parent_span_id == spans["interpret"].span_id
    carried = dict(read(empty_kafka.bootstrap, "context-updates")[0].headers)["traceparent"]
    assert carried.decode().split("-")[1:3] == [TRACE, spans["emit"].span_id.hex()]
    assert not any(SECRET.encode() in body for body in received)


def test_it_is_off_unless_a_collector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is carried on, and a collector without the extra is a clear error."""
    with closing_traces() as traces:
        assert traces.carried() == ()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"install standfast\[tracing\]"), closing_traces():
        raise AssertionError("it starts without the extra")
