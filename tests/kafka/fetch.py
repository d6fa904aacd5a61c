"""`make kafka`: fetch Apache Kafka and an S3 server with Maven, and prepare for a short start.

On a build server a failure is a failure; elsewhere it is one line, and the tests that need Apache
Kafka are left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.kafka.cluster import Kafka, KafkaFailedError
from tests.kafka.software import (
    BUILD,
    CLASS_ARCHIVE,
    DEPLOY,
    FETCHED,
    LIBS,
    S3_LIBS,
    missing_java,
)

FETCH_SECONDS_MAX = 900
ARCHIVE_SECONDS_MAX = 120.0


def main() -> int:
    """Fetch; the status says whether a run of the tests may go on."""
    failure = missing_java() or _fetch("pom.xml", LIBS) or _fetch("s3.pom.xml", S3_LIBS)
    if failure is None:
        _archive_classes()
        FETCHED.touch()
        return 0
    print(f"Apache Kafka was not fetched: {failure}", file=sys.stderr)
    return 1 if on_build_server() else 0


def on_build_server() -> bool:
    """Whether `CI` is set."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def _fetch(project: str, libs: Path) -> str | None:
    """Copy what a project depends on into a folder of libraries; or say what went wrong."""
    if shutil.which("mvn") is None:
        return "there is no Maven (mvn)"
    FETCHED.unlink(missing_ok=True)
    CLASS_ARCHIVE.unlink(missing_ok=True)
    shutil.rmtree(libs, ignore_errors=True)
    command = ["mvn", "--batch-mode", "--quiet", "--no-transfer-progress", "--strict-checksums"]
    BUILD.mkdir(parents=True, exist_ok=True)
    log = BUILD / "maven.log"
    with log.open("wb") as said:
        try:
            done = subprocess.run(
                [*command, "--file", DEPLOY / project, f"-Dlibs={libs}"],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                check=False,
                timeout=FETCH_SECONDS_MAX,
            )
        except subprocess.TimeoutExpired:
            return f"Maven took longer than {FETCH_SECONDS_MAX} s"
    return None if done.returncode == 0 else f"Maven failed: see {log}"


def _archive_classes() -> None:
    """Run a broker once and keep its classes; without them brokers start all the same."""
    option = f"-XX:ArchiveClassesAtExit={CLASS_ARCHIVE}"
    try:
        with Kafka(java_options=(option,)) as kafka:
            kafka.brokers[0].stop(ARCHIVE_SECONDS_MAX)
    except KafkaFailedError as failed:
        print(f"Kafka starts slowly here: {failed}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
