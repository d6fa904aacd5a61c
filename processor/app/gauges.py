"""What of a worker is looked up when somebody asks for its metrics."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from processor.app.assignment import Assignment
from processor.app.conversations import ConversationsOfWorker
from processor.app.dispatcher import Dispatcher
from processor.app.faust_app import App, lag, uncommitted
from processor.app.intake import Intake
from processor.app.local_store import LocalStore
from processor.app.metrics import Gauge


def gauges(
    app: App,
    intake: Intake,
    dispatcher: Dispatcher,
    assignment: Assignment,
    store: LocalStore,
    conversations: ConversationsOfWorker,
) -> Iterator[Gauge]:
    """Everything about a worker that goes up and down."""
    yield from _of_messages(app, intake, dispatcher)
    ready = assignment.status() or {}
    yield Gauge.one("standfast_partitions", "Partitions the worker has.", len(ready))
    folded = sum(ready.values())
    yield Gauge.one("standfast_partitions_ready", "Partitions folded to their end.", folded)
    yield Gauge.one(
        "standfast_partitions_stopped",
        "Partitions whose log holds what this version cannot read.",
        assignment.stopped(),
    )
    told = conversations.readiness().model_dump(exclude={"ready"})
    yield Gauge(
        "standfast_ready",
        "Whether what /readyz asks for is as it should be: 1 or 0.",
        {(condition,): float(is_well) for condition, is_well in told.items()},
        ("condition",),
    )
    yield Gauge.one(
        "standfast_oldest_check_seconds",
        "How long the oldest check that is not folded has waited.",
        conversations.oldest_asked_s(),
    )
    held = store.held()
    yield Gauge.one("standfast_conversations_held", "Conversations in memory.", held.conversations)
    yield Gauge.one("standfast_weight_held", "Their weight, in records.", held.weight)
    yield from of_file(store.path)


def of_file(path: Path) -> Iterator[Gauge]:
    """A store's file and the disk that it is on; nothing of what cannot be asked just now."""
    try:
        disk, size = shutil.disk_usage(path.parent), path.stat().st_size
    except OSError:
        return
    yield Gauge.one("standfast_store_bytes", "The size of the store's file.", size)
    yield Gauge.one("standfast_disk_bytes", "The size of the disk with the store.", disk.total)
    yield Gauge.one("standfast_disk_free_bytes", "What is free on that disk.", disk.free)


def _of_messages(app: App, intake: Intake, dispatcher: Dispatcher) -> Iterator[Gauge]:
    """Messages on their way through the worker."""
    yield Gauge.by_topic("standfast_in_hand", "Messages in hand.", intake.in_hand())
    yield Gauge.by_topic(
        "standfast_oldest_in_hand_seconds",
        "How long the message that holds the others back has been in hand.",
        intake.oldest_age_s(),
    )
    for name, what, counts in (
        ("standfast_jobs_running", "Utterances that are worked on.", dispatcher.running()),
        ("standfast_jobs_waiting", "Utterances that wait.", dispatcher.waiting()),
    ):
        values: dict[tuple[str, ...], float] = {(kind,): count for kind, count in counts.items()}
        yield Gauge(name, f"{what} Kind: call, or work if no model is asked.", values, ("kind",))
    yield Gauge(
        "standfast_uncommitted",
        "How far the last message that was read of a partition lies beyond what is committed.",
        uncommitted(app),
        ("topic", "partition"),
    )
    yield Gauge(
        "standfast_lag",
        "Messages of a partition that are not committed.",
        lag(app),
        ("topic", "partition"),
    )
