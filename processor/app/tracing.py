"""Traces that cross topics and the gate, for sites that run a collector.

Off unless OTEL_EXPORTER_OTLP_ENDPOINT (or its variant for traces) is set; then the extra `tracing`
must be installed, and the other OTEL_... variables mean what OpenTelemetry says. The parent of a
span is in the headers of the message or request that is worked on, and what is sent meanwhile
carries the span on, so a trace goes from whoever published an utterance to whoever reads a verdict,
and from a check through the log to its answer. No span has what was said.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, final

from processor.app.errors import SettingsError
from processor.app.messages import Delivered, Headers

SERVICE = "standfast"
_NOTHING = nullcontext()
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@final
class Tracing:
    """Spans around the work on messages; without a provider there are none."""

    def __init__(self, provider: Any = None) -> None:
        self._provider = provider
        if provider is None:
            return
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = provider.get_tracer(SERVICE)
        self._consumer = SpanKind.CONSUMER
        self._server = SpanKind.SERVER
        self._context = TraceContextTextMapPropagator()

    def span(self, name: str, message: Delivered) -> AbstractContextManager[object]:
        """A span around the work on a message, as a child of the one that it carries."""
        if self._provider is None:
            return _NOTHING
        carried = {key: (value or b"").decode("ascii", "replace") for key, value in message.headers}
        place = {
            "messaging.system": "kafka",
            "messaging.destination.name": message.topic,
            "messaging.destination.partition.id": str(message.partition),
            "messaging.kafka.offset": message.offset,
        }
        parent = self._context.extract(carried)
        span: AbstractContextManager[object] = self._tracer.start_as_current_span(
            name, parent, self._consumer, place
        )
        return span

    @contextmanager
    def request(
        self, method: str, route: str, headers: Mapping[str, str]
    ) -> Iterator[Callable[[int], None]]:
        """A span around the answer to a request; what it yields is told the status."""
        if self._provider is None:
            yield lambda _: None
            return
        with self._tracer.start_as_current_span(
            f"{method} {route}",
            self._context.extract({name.lower(): value for name, value in headers.items()}),
            self._server,
            {"http.request.method": method, "http.route": route},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield lambda status: span.set_attribute("http.response.status_code", status)

    def step(self, name: str) -> AbstractContextManager[object]:
        """A span around a part of what is being done."""
        if self._provider is None:
            return _NOTHING
        span: AbstractContextManager[object] = self._tracer.start_as_current_span(name)
        return span

    def carried(self) -> Headers:
        """The headers that carry the current span on."""
        if self._provider is None:
            return ()
        headers: dict[str, str] = {}
        self._context.inject(headers)
        return tuple((key, value.encode()) for key, value in headers.items())


@contextmanager
def closing_traces() -> Iterator[Tracing]:
    """Tracing as the environment asks for it; what is left is sent at the end.

    Raises SettingsError.
    """
    asked = next((name for name in _ENDPOINTS if os.environ.get(name)), None)
    if asked is None:
        yield Tracing()
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as missing:
        raise SettingsError(f"{asked} is set: install standfast[tracing]") from missing
    provider = TracerProvider(resource=Resource.create({"service.name": SERVICE}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield Tracing(provider)
    finally:
        provider.shutdown()
