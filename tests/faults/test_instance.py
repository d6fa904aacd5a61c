"""The name of a worker in its group is its own."""

from __future__ import annotations

from pathlib import Path

from tests.kafka.cluster import Kafka
from tests.pipeline.workers import make_topics, running_worker, stop

NAME = "STANDFAST_WORKER_INSTANCE"


def test_of_two_workers_with_one_name_the_first_ends_and_says_so(
    empty_kafka: Kafka, tmp_path: Path
) -> None:
    """They would throw each other out of the group for ever; one that follows another may stay."""
    make_topics(empty_kafka.bootstrap)
    one, other = tmp_path / "one.duckdb", tmp_path / "other.duckdb"
    with running_worker(empty_kafka.bootstrap, one, **{NAME: "a"}) as first:
        first.kill()
        first.wait()
        with (
            running_worker(empty_kafka.bootstrap, one, **{NAME: "a"}) as again,
            running_worker(empty_kafka.bootstrap, other, **{NAME: "a"}) as second,
        ):
            assert again.wait(40) == 1
            assert second.poll() is None
            assert stop(second) == 0
    last = one.with_suffix(".log").read_text().splitlines()[-1]
    assert "another worker of the group standfast has the instance a" in last
