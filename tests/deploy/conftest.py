"""The image, and what the product tells Prometheus, once for all tests of this folder."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from processor.app.archive import Copier
from processor.app.archive_gauges import archive_metrics
from processor.app.archive_thread import ArchiveThread
from processor.app.settings import KafkaSettings
from tests.deploy.dockerfile import read_dockerfile
from tests.deploy.image import Image, build
from tests.deploy.product import metrics_of_a_worker, told_metrics
from tests.deploy.software import DEPLOY


@pytest.fixture(scope="package")
def image() -> Iterator[Image]:
    """The image as its Dockerfile builds it; its folder is open to a user without rights."""
    folder = Path(tempfile.mkdtemp(prefix="standfast-image-"))
    folder.chmod(0o755)
    yield build(read_dockerfile(DEPLOY / "Dockerfile"), folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="package")
def told(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Every metric that a worker and an archive tell of themselves."""
    folder = tmp_path_factory.mktemp("metrics")
    archive = ArchiveThread(folder / "archive.duckdb")
    copier = Copier(KafkaSettings(bootstrap="nowhere:9092"), archive, asyncio.Event())
    texts = (metrics_of_a_worker(folder), archive_metrics(copier, archive.path)().decode())
    return set().union(*map(told_metrics, texts)) | {"up"}
