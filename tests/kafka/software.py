"""Where Apache Kafka and Java are on this machine, or why the tests cannot have them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy" / "kafka"
BUILD = Path(os.environ.get("STANDFAST_TEST_KAFKA", ROOT / "build" / "kafka"))
LIBS = BUILD / "libs"
S3_LIBS = BUILD / "s3"
CLASS_ARCHIVE = BUILD / "classes.jsa"
"""Kafka's classes as the JVM maps them into memory; with it a broker starts in half the time."""
FETCHED = BUILD / "fetched"
"""Written last by `make kafka`, so that an interrupted fetch starts again."""
JAVA_MIN = 17
NEED_KAFKA = frozenset({"kafka", "empty_kafka", "start_kafka", "s3"})
"""Fixtures that give what `make kafka` fetches: a test that uses one is of the group `kafka`."""
KEPT_LOGS: pytest.StashKey[list[str]] = pytest.StashKey()
"""Where the logs of brokers are whose tests failed."""


@cache
def missing() -> str | None:
    """Why Apache Kafka cannot run here, or None if it can."""
    if (no_java := missing_java()) is not None:
        return no_java
    if not FETCHED.exists():
        return f"Apache Kafka is not in {LIBS}; make kafka fetches it"
    return None


@cache
def missing_java() -> str | None:
    """Why no Java that Kafka accepts is here, or None if there is one."""
    java = java_tool("java")
    if java is None:
        return f"there is no Java; Apache Kafka needs {JAVA_MIN} or newer"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < JAVA_MIN:
        return f"{java} is not Java {JAVA_MIN} or newer"
    return None


def java_tool(name: str) -> str | None:
    """The path of a program of the Java installation: the one of JAVA_HOME, or on the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and (tool := shutil.which(name, path=Path(home) / "bin")):
        return tool
    return shutil.which(name)


def java_command(heap_mb: int, *options: str) -> list[str]:
    """Java with Kafka on its class path, tuned for a short start; the main class comes next."""
    java = java_tool("java")
    assert java is not None, missing_java()
    archive = [f"-XX:SharedArchiveFile={CLASS_ARCHIVE}"] if CLASS_ARCHIVE.exists() else []
    return [
        java,
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        "-Xlog:disable",
        "-Xlog:all=error:stderr",
        f"-Dlog4j2.configurationFile={DEPLOY / 'log4j2.properties'}",
        *(options or archive),
        "-cp",
        str(LIBS / "*"),
    ]
