"""What a worker counts and measures, for Prometheus.

Counters are told what happened; gauges are looked up when somebody asks, so they cost nothing
between two scrapes. No label has a conversation, and of tenants only those that the settings name:
their number is not bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
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
OTHER_TENANTS = "_other"
"""The label of all tenants that are not named; no tenant can be called so."""


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


def new_registry(look: Callable[[], Iterable[Gauge]]) -> CollectorRegistry:
    """A registry with the process itself and what `look` gives."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(_Lookup(look))
    return registry


@final
class Metrics:
    """The metrics of one worker; `look` gives its gauges, `tenants` have labels of their own."""

    def __init__(
        self,
        look: Callable[[], Iterable[Gauge]] = tuple,
        tenants: frozenset[str] = frozenset(),
    ) -> None:
        self._labelled: dict[tuple[Counter, str], Counter] = {}
        self._tenants = tenants
        self._registry = new_registry(look)
        counter = partial(Counter, registry=self._registry)
        histogram = partial(Histogram, registry=self._registry)
        self._acknowledged = counter(
            "standfast_acknowledged",
            "Messages that are done with, as all before them on their partition are.",
            ["topic"],
        )
        self._folded = counter("standfast_events_folded", "Events of the log folded.", ["type"])
        self._refused = counter("standfast_events_refused", "Events that did not fit.", ["reason"])
        self._rejected = counter("standfast_operations_rejected", "Operations rejected.")
        self._derived = counter("standfast_events_derived", "Derived events emitted.", ["type"])
        self._verdicts = counter("standfast_verdicts", "Verdicts emitted.", ["outcome"])
        self._alerts = counter("standfast_ungrounded_alerts", "Alerts emitted.", ["severity"])
        self._tenant_verdicts = counter(
            "standfast_tenant_verdicts", "Verdicts emitted, by tenant.", ["tenant", "outcome"]
        )
        self._tenant_alerts = counter(
            "standfast_tenant_alerts", "Alerts emitted, by tenant.", ["tenant", "severity"]
        )
        self._letters = counter("standfast_dead_letters", "Dead letters written.", ["reason_class"])
        self._unavailable = counter(
            "standfast_endpoint_failures", "Calls the endpoint did not answer."
        )
        self._calls = counter("standfast_model_calls", "Calls of a model in what was folded.")
        self._tokens = counter(
            "standfast_model_tokens",
            "Tokens that models read and wrote in what was folded.",
            ["direction"],
        )
        self._seconds = histogram(
            "standfast_utterance_seconds",
            "From the delivery of an utterance to the emission of what came of it.",
            buckets=_SECONDS,
        )
        self._lag = histogram(
            "standfast_loop_lag_seconds",
            "How much later than asked the event loop wakes.",
            buckets=_LAG_SECONDS,
        )
        for each in DeadLetterClass:  # an increase from nothing to one is none for Prometheus
            self._letters.labels(each.value)
        for direction in ("in", "out"):
            self._tokens.labels(direction)

    def emitted(self, folded: Folded, seconds: float | None) -> None:
        """An event was folded and everything derived from it is on its topics."""
        if folded.is_again:
            return
        self._of(self._folded, folded.event.type).inc()
        provenance = folded.event.provenance
        if provenance.attempts:
            self._calls.inc(provenance.attempts)
            self._of(self._tokens, "in").inc(provenance.tokens_in)
            self._of(self._tokens, "out").inc(provenance.tokens_out)
        if provenance.rejections:
            self._rejected.inc(len(provenance.rejections))
        if seconds is not None:
            self._seconds.observe(seconds)
        tenant = folded.event.tenant_id
        tenant = tenant if tenant in self._tenants else OTHER_TENANTS
        for event in folded.derived:
            self._of(self._derived, event.TYPE).inc()
            match event:
                case TurnEvent():
                    if event.rejections:
                        self._rejected.inc(len(event.rejections))
                case VerdictEvent():
                    self._of(self._verdicts, event.outcome.value).inc()
                    self._tenant_verdicts.labels(tenant, event.outcome.value).inc()
                case UngroundedAlert():
                    self._alerts.labels(event.severity.value).inc()
                    self._tenant_alerts.labels(tenant, event.severity.value).inc()

    def _of(self, counter: Counter, label: str) -> Counter:
        """The counter with that label; what each event counts is looked up once."""
        found = self._labelled.get((counter, label))
        if found is None:
            found = self._labelled[counter, label] = counter.labels(label)
        return found

    def acknowledged(self, topic: str, count: int) -> None:
        """So many messages of a topic were acknowledged."""
        self._of(self._acknowledged, topic).inc(count)

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
