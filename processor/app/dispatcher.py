"""The keyed dispatcher: in order within a conversation, concurrent across, and fair.

Jobs of one conversation run one after the other. At most `running_max` run at a time, at most
`running_per_tenant_max` of one tenant. A free place goes to the tenant whose turn it is, and there
to the conversation whose turn it is: one busy conversation or tenant delays the others by one job,
not by its backlog. Nothing here bounds what is waiting; that is done where messages are taken in.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, NamedTuple, TypeAlias, final

from schemas.ids import conversation_key

Job: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Something to run; it deals with its own failures."""


@final
class Lane(NamedTuple):
    """What is kept in order: a conversation of a tenant, on a partition."""

    partition: int
    tenant_id: str
    conversation_id: str


class _Tenant:
    """The lanes of a tenant that wait for a place, in the order of their turns."""

    __slots__ = ("ready", "running")

    def __init__(self) -> None:
        self.ready: deque[Lane] = deque()
        self.running = 0


@final
class Dispatcher:
    """Runs jobs as tasks of the running event loop, each in the context that submitted it.

    `on_crash` is called with the exception of a job that failed, which is a broken promise.
    """

    def __init__(
        self,
        *,
        running_max: int,
        running_per_tenant_max: int,
        on_crash: Callable[[BaseException], None],
    ) -> None:
        assert running_max >= 1, running_max
        assert running_per_tenant_max >= 1, running_per_tenant_max
        self._running_max = running_max
        self._per_tenant_max = running_per_tenant_max
        self._on_crash = on_crash
        self._waiting: dict[Lane, deque[tuple[Job, Context]]] = {}
        self._tenants: OrderedDict[str, _Tenant] = OrderedDict()
        self._tasks: dict[Lane, asyncio.Task[None]] = {}

    @property
    def running(self) -> int:
        """How many jobs are running."""
        return len(self._tasks)

    @property
    def waiting(self) -> int:
        """How many jobs wait for their conversation or for a place."""
        return sum(map(len, self._waiting.values()))

    def submit(self, lane: Lane, job: Job) -> None:
        """Run the job when those before it in its lane are done and there is a place."""
        jobs = self._waiting.get(lane)
        if jobs is not None:
            jobs.append((job, copy_context()))
            return
        self._waiting[lane] = deque(((job, copy_context()),))
        if lane not in self._tasks:
            self._line_up(lane)
            self._start_what_can()

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
        for tenant in self._tenants.values():
            tenant.ready = deque(lane for lane in tenant.ready if lane in self._waiting)
        if ending:
            await asyncio.wait(ending)

    async def idle(self) -> None:
        """Return when nothing runs and nothing waits."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def _line_up(self, lane: Lane) -> None:
        tenant = self._tenants.get(lane.tenant_id)
        if tenant is None:
            tenant = self._tenants[lane.tenant_id] = _Tenant()
        tenant.ready.append(lane)

    def _start_what_can(self) -> None:
        while len(self._tasks) < self._running_max:
            chosen = self._next_tenant()
            if chosen is None:
                return
            self._start(chosen.ready.popleft(), chosen)

    def _next_tenant(self) -> _Tenant | None:
        """The tenant whose turn it is; its next turn comes after those of all others."""
        for tenant_id, tenant in self._tenants.items():
            if tenant.ready and tenant.running < self._per_tenant_max:
                self._tenants.move_to_end(tenant_id)
                return tenant
        return None

    def _start(self, lane: Lane, tenant: _Tenant) -> None:
        jobs = self._waiting[lane]
        job, context = jobs.popleft()
        if not jobs:
            del self._waiting[lane]
        tenant.running += 1
        name = conversation_key(lane.tenant_id, lane.conversation_id)
        task = asyncio.create_task(job(), name=name, context=context)
        self._tasks[lane] = task
        task.add_done_callback(lambda done: self._ended(lane, done))

    def _ended(self, lane: Lane, task: asyncio.Task[None]) -> None:
        del self._tasks[lane]
        tenant = self._tenants[lane.tenant_id]
        tenant.running -= 1
        if lane in self._waiting:
            tenant.ready.append(lane)
        elif not tenant.ready and not tenant.running:
            del self._tenants[lane.tenant_id]
        if not task.cancelled():
            crash = task.exception()
            if crash is not None:
                self._on_crash(crash)
        self._start_what_can()
