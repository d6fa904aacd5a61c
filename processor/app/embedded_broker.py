"""A Kafka-like broker inside this process, for a try-out and for tests where there is no Java.

It is the mock cluster of librdkafka, which the package `confluent-kafka` carries (the extra
`embedded`). It keeps everything in memory and forgets it at the end. It has no CreateTopics: a
topic appears on first use, with four partitions. It knows no passwords and no TLS.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, final

from processor.app.errors import BrokerError

METADATA_SECONDS_MAX = 10.0
PARTITIONS = 4
"""How many partitions a topic of the embedded broker has."""


@final
class EmbeddedBroker:
    """Runs from its construction to `close`; `bootstrap` is its address on loopback.

    Raises BrokerError where the extra is not installed.
    """

    def __init__(self) -> None:
        try:
            from confluent_kafka import KafkaException, Producer
        except ImportError as absent:
            raise BrokerError(
                "the embedded broker needs the package confluent-kafka: "
                "pip install 'standfast[embedded]'"
            ) from absent
        # The cluster lives as long as this producer, which produces nothing itself.
        self._host: Any = Producer(
            {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 4}
        )
        try:
            (broker,) = self._host.list_topics(timeout=METADATA_SECONDS_MAX).brokers.values()
        except KafkaException as failed:
            raise BrokerError(f"the embedded broker did not start: {failed}") from failed
        self.bootstrap = f"{broker.host}:{broker.port}"

    def close(self) -> None:
        """Stop the broker; what it held is gone."""
        self._host = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
