"""The keyed dispatcher: in order within a conversation, concurrent across, and fair.

Jobs of one conversation run one after the other. Those that wait for a model have places of their
own (`Kind`), so that however long it takes, what needs none goes on. A free place goes to the
tenant whose turn it is, and there to the conversation whose turn it is: one busy conversation or
tenant delays the others by one job, not by its backlog. Nothing here bounds what is waiting; that
is done where messages are taken in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context, copy_context
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias, final

from schemas.ids import conversation_key

Job: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Something to run; it deals with its own failures."""


class Kind(StrEnum):
    """What a job mostly waits for."""

    CALL = "call"
    """The answer of a model."""
    WORK = "work"
    """The worker itself, and the broker."""


@final
class Lane(NamedTuple):
    """What is kept in order: a conversation of a tenant, on a partition."""

    partition: int
    tenant_id: str
    conversation_id: str


@final
class Limits(NamedTuple):
    """How many jobs of a kind run at a time, and how many of them for one tenant."""

    running: int
    per_tenant: int


@final
class _Places:
    """The places of one kind of jobs, and who waits for one."""

    def __init__(self, limits: Limits) -> None:
        assert min(limits) >= 1, limits
        self.running = 0
        self._limits = limits
        self._running_of: dict[str, int] = {}
        self._ready: dict[str, deque[Lane]] = {}

    def line_up(self, lane: Lane) -> None:
        """The next job of a lane is of this kind."""
        self._ready.setdefault(lane.tenant_id, deque()).append(lane)

    def take(self) -> Lane | None:
        """Give a free place to the lane whose turn it is, if there are both."""
        if self.running >= self._limits.running:
            return None
        for tenant_id, lanes in self._ready.items():
            running = self._running_of.get(tenant_id, 0)
            if running < self._limits.per_tenant:
                self._running_of[tenant_id] = running + 1
                self.running += 1
                lane = lanes.popleft()
                del self._ready[tenant_id]
                if lanes:  # the next turn of a tenant comes after those of all others
                    self._ready[tenant_id] = lanes
                return lane
        return None

    def give_back(self, lane: Lane) -> None:
        """A job of the lane has ended."""
        self.running -= 1
        self._running_of[lane.tenant_id] -= 1
        if not self._running_of[lane.tenant_id]:
            del self._running_of[lane.tenant_id]

    def forget(self, lanes: frozenset[Lane]) -> None:
        """They wait no more."""
        for tenant_id, ready in list(self._ready.items()):
            self._ready[tenant_id] = deque(lane for lane in ready if lane not in lanes)
            if not self._ready[tenant_id]:
                del self._ready[tenant_id]


@final
class Dispatcher:
    """Runs jobs as tasks of the running event loop, each in the context that submitted it.

    `on_crash` is called with the exception of a job that failed, which is a broken promise.
    """

    def __init__(
        self, limits: Mapping[Kind, Limits], on_crash: Callable[[BaseException], None]
    ) -> None:
        self._places = {kind: _Places(limits[kind]) for kind in Kind}
        self._on_crash = on_crash
        self._waiting: dict[Lane, deque[tuple[Kind, Job, Context]]] = {}
        self._tasks: dict[Lane, asyncio.Task[None]] = {}

    def running(self) -> dict[Kind, int]:
        """How many jobs are running."""
        return {kind: places.running for kind, places in self._places.items()}

    def waiting(self) -> dict[Kind, int]:
        """How many jobs wait for their conversation or for a place."""
        counts = dict.fromkeys(Kind, 0)
        for jobs in self._waiting.values():
            for kind, _, _ in jobs:
                counts[kind] += 1
        return counts

    def submit(self, lane: Lane, kind: Kind, job: Job) -> None:
        """Run the job when those before it in its lane are done and there is a place."""
        jobs = self._waiting.get(lane)
        if jobs is not None:
            jobs.append((kind, job, copy_context()))
            return
        self._waiting[lane] = deque(((kind, job, copy_context()),))
        if lane not in self._tasks:
            self._places[kind].line_up(lane)
            self._start_what_can(kind)

    async def cancel(self, partitions: frozenset[int] | None = None) -> None:
        """Forget what waits on these partitions (None: on all), and end what runs there."""
        chosen = [
            lane
            for lane in {**self._waiting, **self._tasks}
            if partitions is None or lane.partition in partitions
        ]
        ending: list[asyncio.Task[None]] = []
        for lane in chosen:
            self._waiting.pop(lane, None)
            task = self._tasks.get(lane)
            if task is not None:
                task.cancel()
                ending.append(task)
        for places in self._places.values():
            places.forget(frozenset(chosen))
        if ending:
            await asyncio.wait(ending)

    async def idle(self) -> None:
        """Return when nothing runs and nothing waits."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def _start_what_can(self, kind: Kind) -> None:
        places = self._places[kind]
        while (lane := places.take()) is not None:
            self._start(lane)

    def _start(self, lane: Lane) -> None:
        jobs = self._waiting[lane]
        kind, job, context = jobs.popleft()
        if not jobs:
            del self._waiting[lane]
        name = conversation_key(lane.tenant_id, lane.conversation_id)
        task = asyncio.create_task(job(), name=name, context=context)
        self._tasks[lane] = task
        task.add_done_callback(lambda done: self._ended(lane, kind, done))

    def _ended(self, lane: Lane, kind: Kind, task: asyncio.Task[None]) -> None:
        del self._tasks[lane]
        jobs = self._waiting.get(lane)
        if jobs is not None:
            self._places[jobs[0][0]].line_up(lane)
        self._places[kind].give_back(lane)
        if not task.cancelled():
            crash = task.exception()
            if crash is not None:
                self._on_crash(crash)
        for each in Kind:
            self._start_what_can(each)
