"""What an archive says about itself to Prometheus, when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from prometheus_client import generate_latest

from processor.app.archive import Copier
from processor.app.gauges import of_file
from processor.app.metrics import Gauge, new_registry
from replay.archive_batch import DELETED


def archive_metrics(copier: Copier, path: Path) -> Callable[[], bytes]:
    """Gives everything in the format of Prometheus."""
    registry = new_registry(lambda: _gauges(copier, path))
    return lambda: generate_latest(registry)


def _gauges(copier: Copier, path: Path) -> Iterator[Gauge]:
    yield Gauge(
        "standfast_archive_behind",
        "Messages of a partition that the archive has not copied, as far as it was told.",
        {(topic, str(number)): count for (topic, number), count in copier.behind().items()},
        ("topic", "partition"),
    )
    yield Gauge.one("standfast_archive_copied", "Messages copied since the start.", copier.copied)
    lost = sum(gap.reason == DELETED for gap in copier.gaps)
    yield Gauge.one("standfast_archive_gaps", "Gaps since the start: what is lost.", lost)
    yield from of_file(path)
