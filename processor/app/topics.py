"""The topics on the brokers: creating them as `schemas.topics` says, and comparing the two.

Nothing that exists is changed: partition counts cannot shrink, and settings of a topic in use are
its owner's business. What does not fit is reported.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from aiokafka.admin import NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from processor.app.connection import admin_client
from processor.app.errors import BrokerError
from processor.app.settings import KafkaSettings
from schemas.topics import TOPICS, UNLIMITED, Payload, Topic

PARTITIONS = 12
REPLICATION = 3
IN_SYNC_MAX = 2
"""Writes wait for two replicas wherever there are two, so that one machine may be lost."""
TOPIC_SETTING = "topic"
"""Stands where the topic itself is missing or cannot be read."""
PARTITIONS_SETTING = "partitions"
REPLICATION_SETTING = "replication"
IN_SYNC_SETTING = "min.insync.replicas"

RETENTION, SEGMENT, COMPACTION = "retention.ms", "segment.ms", "max.compaction.lag.ms"
_DAY_MS = 24 * 60 * 60 * 1_000
_SEGMENT_MS = 7 * _DAY_MS
"""How long Kafka writes to one file of a topic, if it is not told otherwise."""

_VISIBLE_SECONDS_MAX = 10.0
_LOOK_SECONDS = 0.05
_AT_LEAST = frozenset({REPLICATION_SETTING, IN_SYNC_SETTING, "retention.ms", "retention.bytes"})
"""Keeping more, or longer, than asked for is no mismatch."""
_ALREADY_EXISTS = 36


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """What a site chooses: counts, and the tenants that have a topic of alerts of their own.

    Without `partitions` any count will do, as long as all topics have the same. Within
    `erasure_window_days` topics lose what is in the clear: a message may stay for as long as its
    segment is open and its retention then lasts, so each gets half of the window.
    """

    partitions: int | None = None
    replication: int = REPLICATION
    tenants: tuple[str, ...] = ()
    erasure_window_days: int | None = None

    def topics(self) -> Iterator[tuple[str, Topic]]:
        """The topics by their name on the broker."""
        for topic in TOPICS:
            for tenant in self.tenants if topic.per_tenant else ("",):
                yield topic.address_for(tenant), topic

    def configuration(self, topic: Topic) -> dict[str, int | str]:
        """Kafka's settings of a topic, those of the site included."""
        in_sync = min(IN_SYNC_MAX, self.replication)
        return {**topic.configuration(), IN_SYNC_SETTING: in_sync, **self._bounded(topic)}

    def _bounded(self, topic: Topic) -> dict[str, int | str]:
        """What keeps a topic within the erasure window; nothing for what is kept sealed."""
        if self.erasure_window_days is None:
            return {}
        half = self.erasure_window_days * _DAY_MS // 2
        if topic.retention_ms is not None:
            return {RETENTION: min(topic.retention_ms, half), SEGMENT: min(_SEGMENT_MS, half)}
        if topic.payload is Payload.DATA_KEY:
            segment = min(_SEGMENT_MS, half)
            return {SEGMENT: segment, COMPACTION: half, "delete.retention.ms": half}
        return {}

    def at_most(self, topic: Topic) -> dict[str, int]:
        """Settings that may be less than the layout's, and not more."""
        half = (self.erasure_window_days or 0) * _DAY_MS // 2
        return dict.fromkeys(self._bounded(topic), half)


@final
class Mismatch(NamedTuple):
    """One setting of one topic that is not what it should be."""

    topic: str
    setting: str
    actual: str
    expected: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.setting} is {self.actual}, should be {self.expected}"


@final
class Found(NamedTuple):
    """A topic as the brokers have it, or why they do not tell."""

    partitions: int
    replication: int
    configuration: dict[str, str]
    problem: str = ""


@final
class Created(NamedTuple):
    """What `create` did, and what does not fit all the same."""

    created: tuple[str, ...]
    mismatches: tuple[Mismatch, ...]


async def check(settings: KafkaSettings, layout: Layout) -> tuple[Mismatch, ...]:
    """Everything that differs from the layout, in the order of the topics. Raises BrokerError."""
    async with admin_client(settings) as admin:
        return await _check(admin, layout)


async def create(settings: KafkaSettings, layout: Layout) -> Created:
    """Create the topics that are not there, unless those that are there do not fit.

    Again with the same layout it does nothing. Raises BrokerError.
    """
    async with admin_client(settings) as admin:
        found = await _find(admin, [name for name, _ in layout.topics()])
        unfit = tuple(one for one in _compare(layout, found) if one.topic in found)
        missing = {name: topic for name, topic in layout.topics() if name not in found}
        if unfit or not missing:
            return Created((), unfit)
        await _need_controller(settings, admin)
        partitions = layout.partitions or _common_count(found) or PARTITIONS
        asked = [
            NewTopic(
                name,
                partitions,
                layout.replication,
                topic_configs={
                    setting: str(value) for setting, value in layout.configuration(topic).items()
                },
            )
            for name, topic in missing.items()
        ]
        _raise_refused(settings, await admin.create_topics(asked))
        return Created(tuple(missing), await _check_new(admin, layout, missing))


async def partition_counts(settings: KafkaSettings) -> dict[str, int]:
    """How many partitions each topic on the brokers has. Raises BrokerError."""
    async with admin_client(settings) as admin:
        described = await admin.describe_topics()
    return {topic["topic"]: len(topic["partitions"]) for topic in described}


async def partition_count(settings: KafkaSettings, name: str) -> int:
    """How many partitions a topic has. Raises BrokerError where it is not there."""
    count = (await partition_counts(settings)).get(name)
    if count is None:
        raise BrokerError(
            f"{settings.bootstrap}: there is no topic {name}; standfast topics create makes ours"
        )
    return count


async def _check(admin: Any, layout: Layout) -> tuple[Mismatch, ...]:
    found = await _find(admin, [name for name, _ in layout.topics()])
    return tuple(_compare(layout, found))


async def _check_new(admin: Any, layout: Layout, new: Iterable[str]) -> tuple[Mismatch, ...]:
    """The same, once the new topics are known to whichever broker is asked."""
    unknown = {(name, TOPIC_SETTING) for name in new}
    deadline = time.monotonic() + _VISIBLE_SECONDS_MAX
    while True:
        mismatches = await _check(admin, layout)
        seen = {(mismatch.topic, mismatch.setting) for mismatch in mismatches}
        if seen.isdisjoint(unknown) or time.monotonic() > deadline:
            return mismatches
        await asyncio.sleep(_LOOK_SECONDS)


async def _find(admin: Any, names: list[str]) -> dict[str, Found]:
    """Those of the topics that exist; asking for one does not create it."""
    known = set(await admin.list_topics())
    there = [name for name in names if name in known]
    if not there:
        return {}
    described = {topic["topic"]: topic for topic in await admin.describe_topics(there)}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in there]
    found = {}
    for response in await admin.describe_configs(resources):
        for code, message, _, name, entries in response.resources:
            topic = described[name]
            problem = code or topic["error_code"]
            replicas = [len(partition["replicas"]) for partition in topic["partitions"]]
            found[name] = Found(
                partitions=len(replicas),
                replication=min(replicas, default=0),
                configuration={entry[0]: entry[1] for entry in entries},
                problem=f"{for_code(problem).__name__} {message or ''}".strip() if problem else "",
            )
    return found


def _compare(layout: Layout, found: dict[str, Found]) -> Iterator[Mismatch]:
    partitions = layout.partitions or _common_count(found)
    for name, topic in layout.topics():
        actual = found.get(name)
        if actual is None:
            yield Mismatch(name, TOPIC_SETTING, "missing", "there")
            continue
        if actual.problem:
            yield Mismatch(name, TOPIC_SETTING, f"unreadable ({actual.problem})", "readable")
            continue
        expected: dict[str, int | str] = {
            PARTITIONS_SETTING: partitions,
            REPLICATION_SETTING: layout.replication,
            **layout.configuration(topic),
        }
        counted = {
            PARTITIONS_SETTING: str(actual.partitions),
            REPLICATION_SETTING: str(actual.replication),
        }
        most = layout.at_most(topic)
        yield from _differences(name, actual.configuration | counted, expected, most)


def _differences(
    name: str, actual: dict[str, str], expected: dict[str, int | str], most: Mapping[str, int]
) -> Iterator[Mismatch]:
    for setting, value in expected.items():
        there = actual.get(setting, "unknown")
        if setting in most and _is_number(there) and _limit(int(there)) > most[setting]:
            yield Mismatch(
                name, setting, there, f"at most {most[setting]}, half the erasure window"
            )
            continue
        if there == str(value) or (setting in most and setting != RETENTION):
            continue
        if setting in _AT_LEAST:
            if _is_number(there) and _limit(int(there)) >= _limit(int(value)):
                continue
            least = "unlimited" if value == UNLIMITED else f"at least {value}"
            yield Mismatch(name, setting, there, least)
        else:
            yield Mismatch(name, setting, there, str(value))


def _common_count(found: dict[str, Found]) -> int:
    """The partition count that most topics have, of several the one that comes first; or 0."""
    counts = [topic.partitions for topic in found.values() if not topic.problem]
    return max(counts, key=counts.count, default=0)


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _limit(value: int) -> float:
    return float("inf") if value == UNLIMITED else value


async def _need_controller(settings: KafkaSettings, admin: Any) -> None:
    """Raise BrokerError where nobody creates topics, as with the embedded broker."""
    cluster = await admin.describe_cluster()
    if cluster["controller_id"] not in {broker["node_id"] for broker in cluster["brokers"]}:
        raise BrokerError(
            f"{settings.bootstrap}: topics cannot be created there; "
            "an embedded broker makes them on first use"
        )


def _raise_refused(settings: KafkaSettings, response: Any) -> None:
    """Raise BrokerError for a topic that was not created; another may have created it meanwhile."""
    for name, code, *message in response.topic_errors:
        if code not in (0, _ALREADY_EXISTS):
            said = next(iter(message), None) or for_code(code).__name__
            raise BrokerError(f"{settings.bootstrap}: topic {name} was not created: {said}")
