"""What a worker counts and measures, for Prometheus.

Counters are told what happened; gauges are looked up when somebody asks, so they cost nothing
between two scrapes. No label has a tenant or a conversation: their number is not bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from processor.app.interpret import DeadLetterClass
from processor.app.reduce_agent import Folded
from processor.evidence.fold import RefusalReason
from schemas.derived import TurnEvent, UngroundedAlert, VerdictEvent

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
_LAG_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


@final
class Gauge(NamedTuple):
    """One value that can be looked up, by the values of its labels."""

    name: str
    help: str
    values: Mapping[tuple[str, ...], float]
    labels: tuple[str, ...] = ()

    @classmethod
    def by_topic(cls, name: str, help_: str, values: Mapping[str, float]) -> Gauge:
        """A gauge with a value for each topic."""
        return cls(name, help_, {(topic,): value for topic, value in values.items()}, ("topic",))

    @classmethod
    def one(cls, name: str, help_: str, value: float) -> Gauge:
        """A gauge without labels."""
        return cls(name, help_, {(): value})


@final
class _Lookup(Collector):
    """Asks for the gauges when Prometheus asks for them."""

    def __init__(self, look: Callable[[], Iterable[Gauge]]) -> None:
        self._look = look

    def describe(self) -> Iterable[Metric]:
        """Nothing is known before the worker runs."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The gauges as they are now."""
        for gauge in self._look():
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels)
            for labels, value in gauge.values.items():
                family.add_metric(labels, value)
            yield family


@final
class Metrics:
    """The metrics of one worker; `look` gives its gauges."""

    def __init__(self, look: Callable[[], Iterable[Gauge]] = tuple) -> None:
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        registry.register(_Lookup(look))
        self._folded = Counter(
            "standfast_events_folded", "Events of the log folded.", ["type"], registry=registry
        )
        self._refused = Counter(
            "standfast_events_refused", "Events that did not fit.", ["reason"], registry=registry
        )
        self._rejected = Counter(
            "standfast_operations_rejected", "Operations rejected.", registry=registry
        )
        self._derived = Counter(
            "standfast_events_derived", "Derived events emitted.", ["type"], registry=registry
        )
        self._verdicts = Counter(
            "standfast_verdicts", "Verdicts emitted.", ["outcome"], registry=registry
        )
        self._alerts = Counter(
            "standfast_ungrounded_alerts", "Alerts emitted.", ["severity"], registry=registry
        )
        self._letters = Counter(
            "standfast_dead_letters", "Dead letters written.", ["reason_class"], registry=registry
        )
        self._unavailable = Counter(
            "standfast_endpoint_failures", "Calls the endpoint did not answer.", registry=registry
        )
        self._seconds = Histogram(
            "standfast_utterance_seconds",
            "From the delivery of an utterance to the emission of what came of it.",
            registry=registry,
            buckets=_SECONDS,
        )
        self._lag = Histogram(
            "standfast_loop_lag_seconds",
            "How much later than asked the event loop wakes.",
            registry=registry,
            buckets=_LAG_SECONDS,
        )

    def emitted(self, folded: Folded, seconds: float | None) -> None:
        """An event was folded and everything derived from it is on its topics."""
        if folded.is_again:
            return
        self._folded.labels(folded.event.type).inc()
        if seconds is not None:
            self._seconds.observe(seconds)
        for event in folded.derived:
            self._derived.labels(event.TYPE).inc()
            match event:
                case TurnEvent():
                    self._rejected.inc(len(event.rejections))
                case VerdictEvent():
                    self._verdicts.labels(event.outcome.value).inc()
                case UngroundedAlert():
                    self._alerts.labels(event.severity.value).inc()

    def refused(self, reason: RefusalReason) -> None:
        """An event of the log did not fit."""
        self._refused.labels(reason.value).inc()

    def dead_letter(self, reason_class: DeadLetterClass) -> None:
        """A dead letter was written."""
        self._letters.labels(reason_class.value).inc()

    def endpoint_failed(self) -> None:
        """The endpoint of the interpreter did not answer."""
        self._unavailable.inc()

    def loop_lag(self, seconds: float) -> None:
        """The event loop woke that much late."""
        self._lag.observe(seconds)

    def text(self) -> bytes:
        """Everything in the format of Prometheus."""
        return generate_latest(self._registry)
