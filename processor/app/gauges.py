"""What of a worker is looked up when somebody asks for its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from processor.app.dispatcher import Dispatcher
from processor.app.faust_app import App, lag
from processor.app.intake import Intake
from processor.app.local_store import LocalStore
from processor.app.metrics import Gauge


def gauges(
    app: App,
    intake: Intake,
    dispatcher: Dispatcher,
    ready: Mapping[int, bool],
    store: LocalStore,
) -> Iterator[Gauge]:
    """Everything about a worker that goes up and down."""
    yield Gauge.by_topic("standfast_in_hand", "Messages in hand.", intake.in_hand())
    yield Gauge.by_topic(
        "standfast_oldest_in_hand_seconds",
        "How long the message that holds the others back has been in hand.",
        intake.oldest_age_s(),
    )
    yield Gauge.one("standfast_jobs_running", "Utterances that are worked on.", dispatcher.running)
    yield Gauge.one("standfast_jobs_waiting", "Utterances that wait.", dispatcher.waiting)
    yield Gauge.one("standfast_partitions", "Partitions the worker has.", len(ready))
    folded = sum(ready.values())
    yield Gauge.one("standfast_partitions_ready", "Partitions folded to their end.", folded)
    held = store.held()
    yield Gauge.one("standfast_conversations_held", "Conversations in memory.", held.conversations)
    yield Gauge.one("standfast_weight_held", "Their weight, in records.", held.weight)
    yield Gauge(
        "standfast_lag",
        "Messages of a partition that are not committed.",
        lag(app),
        ("topic", "partition"),
    )
