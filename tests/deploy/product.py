"""What the product itself says of its commands, its settings and its metrics."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest import mock
from urllib.error import URLError
from urllib.request import urlopen

import click

from processor.app.interpreter_settings import INTERPRETER_PREFIX, InterpreterSettings
from processor.app.settings import (
    KAFKA_PREFIX,
    WORKER_PREFIX,
    KafkaSettings,
    WorkerSettings,
    interpreter_settings,
    kafka_settings,
    worker_settings,
)
from processor.cli.main import standfast
from tests.deploy.software import ROOT
from tests.kafka.cluster import free_ports

START_SECONDS_MAX = 120
_FIELDS = {
    KAFKA_PREFIX: KafkaSettings.model_fields,
    WORKER_PREFIX: WorkerSettings.model_fields,
    INTERPRETER_PREFIX: InterpreterSettings.model_fields,
}
_OTHERS = frozenset(
    {
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "STANDFAST_KEY_FILE",
    }
)
_METRIC = re.compile(r"\b(?:standfast|process|python)_\w+\b")


def is_setting(name: str) -> bool:
    """Whether the product reads an environment variable of that name."""
    of_fields = (name == prefix + field.upper() for prefix in _FIELDS for field in _FIELDS[prefix])
    return name in _OTHERS or any(of_fields)


def check_settings(environment: Mapping[str, str]) -> WorkerSettings:
    """The settings of a worker with this environment alone. Raises SettingsError."""
    with mock.patch.dict(os.environ, environment, clear=True):
        kafka_settings()
        interpreter_settings({})
        return worker_settings({})


def parse(arguments: list[str]) -> dict[str, object]:
    """What the command line makes of arguments, nothing of it run. Raises click.UsageError."""
    command: click.Command = standfast
    context = command.make_context("standfast", list(arguments))
    parameters = dict(context.params)
    while isinstance(command, click.Group) and (rest := [*context._protected_args, *context.args]):
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command, context = found, found.make_context(name, rest, parent=context)
        parameters |= context.params
    return parameters


def used_metrics(expression: str) -> set[str]:
    """The metrics that a query names."""
    return set(_METRIC.findall(expression))


def told_metrics(text: str) -> set[str]:
    """The names under which Prometheus keeps what it is told."""
    return set(_names(text))


def _names(text: str) -> Iterator[str]:
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        yield name
        if kind == "histogram":
            yield from (f"{name}_{part}" for part in ("bucket", "sum", "count"))


def metrics_of_a_worker(folder: Path) -> str:
    """What a worker with a broker in memory answers at /metrics."""
    (port,) = free_ports(1)
    command = (sys.executable, "-m", "processor.cli", "worker", "--embedded-broker")
    process = subprocess.Popen(
        [*command, "--store", str(folder / "worker.duckdb")],
        cwd=ROOT,
        env={**os.environ, f"{WORKER_PREFIX}LISTEN_PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and process.poll() is None:
            try:
                with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                    return str(answer.read().decode())
            except URLError:
                time.sleep(0.2)
        raise AssertionError("the worker does not answer")
    finally:
        process.kill()
        process.wait()
