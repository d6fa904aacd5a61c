"""Apache Kafka brokers on loopback: start, stop, kill -9, start again on the same data and port."""

from __future__ import annotations

import base64
import random
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kafka.security import PLAINTEXT, Security
from tests.kafka.software import BUILD, DEPLOY, java_command
from tests.kafka.watchdog import Watchdog

HOST = "127.0.0.1"
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0
CLOSE_SECONDS_MAX = 3.0
"""At the end the data is thrown away, and a broker that is alone waits in vain for the others."""
STARTED = b"Kafka Server started"
PORTS = range(20_000, 32_000)
"""Below the ports that the system gives to clients, so that none is lost while a broker is down."""
_PORTS_PER_BROKER = 3


class KafkaFailedError(Exception):
    """A broker did not come up; the message says where its log is."""


class Broker:
    """One broker process; `port` is where clients connect, and stays the same for ever."""

    def __init__(
        self, cluster: Kafka, node_id: int, ports: tuple[int, int, int], settings: Mapping[str, str]
    ) -> None:
        self.node_id = node_id
        self.port, self.internal_port, self.controller_port = ports
        self.log = cluster.logs / f"broker-{node_id}.log"
        self._cluster = cluster
        self._properties = cluster.folder / f"broker-{node_id}.properties"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """HOST:PORT for clients."""
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def format(self, cluster_id: str) -> None:
        """Write the settings and an empty metadata log. Raises KafkaFailedError."""
        template = (DEPLOY / "server.properties").read_text()
        lines = [f"{name}={value}" for name, value in self._settings.items()]
        self._properties.write_text("\n".join([template, *lines, ""]))
        command = [*java_command(128), "kafka.tools.StorageTool", "format"]
        with self.log.open("ab") as log:
            done = subprocess.run(
                [*command, f"--cluster-id={cluster_id}", "--config", str(self._properties)],
                stdout=log,
                stderr=log,
                check=False,
                timeout=START_SECONDS_MAX,
            )
        if done.returncode != 0:
            raise KafkaFailedError(f"formatting broker {self.node_id} failed: see {self.log}")

    def launch(self) -> None:
        """Start the process and return at once; `wait` says when it serves."""
        assert not self.running
        command = java_command(self._cluster.heap_mb, *self._cluster.java_options)
        with self.log.open("ab") as log:
            self._start_of_log = log.tell()
            self._process = subprocess.Popen(
                [*command, "kafka.Kafka", str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._cluster.folder,
                start_new_session=True,
            )
        self._cluster.watchdog.watch(self._process.pid)

    def wait(self, seconds_max: float = START_SECONDS_MAX) -> None:
        """Until the broker is registered and takes requests. Raises KafkaFailedError."""
        deadline = time.monotonic() + seconds_max
        while STARTED not in self._said():
            if not self.running or time.monotonic() > deadline:
                raise KafkaFailedError(
                    f"broker {self.node_id} did not start: see {self.log}; its end is:\n"
                    + self._said()[-2_000:].decode(errors="replace")
                )
            time.sleep(0.05)

    def start(self) -> None:
        """Start on what data there is, and wait until it serves."""
        self.launch()
        self.wait()

    def terminate(self) -> None:
        """Ask the process to stop and return at once."""
        if self._process is not None:
            self._process.terminate()

    def stop(self, seconds_max: float = STOP_SECONDS_MAX) -> None:
        """Stop cleanly; kill what does not follow in time."""
        self.terminate()
        if self._process is not None:
            try:
                self._process.wait(seconds_max)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._ended()

    def kill(self) -> None:
        """`kill -9`: no goodbye to anybody, nothing flushed."""
        if self._process is not None:
            self._process.kill()
        self._ended()

    def _ended(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._cluster.watchdog.forget(self._process.pid)
            self._process = None

    def _said(self) -> bytes:
        with self.log.open("rb") as log:
            log.seek(self._start_of_log)
            return log.read()


class Kafka:
    """One broker, or three that replicate; a context manager that starts and stops them.

    `settings` are added to those of every broker. The data lies in a temporary folder that is
    removed at the end; the logs lie in build/kafka/logs and are removed unless `keep_logs` is set
    or a start failed.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        security: Security = PLAINTEXT,
        settings: Mapping[str, str] | None = None,
        heap_mb: int = 256,
        java_options: tuple[str, ...] = (),
    ) -> None:
        self.security = security
        self.heap_mb = heap_mb
        self.java_options = java_options
        self.keep_logs = False
        self.folder = Path(tempfile.mkdtemp(prefix="standfast-kafka-"))
        (BUILD / "logs").mkdir(parents=True, exist_ok=True)
        self.logs = Path(tempfile.mkdtemp(prefix=f"{brokers}-", dir=BUILD / "logs"))
        self.watchdog = Watchdog()
        security.prepare(self.folder)
        ports = free_ports(brokers * _PORTS_PER_BROKER)
        triples = list(zip(*[iter(ports)] * _PORTS_PER_BROKER, strict=True))
        voters = ",".join(
            f"{node}@{HOST}:{controller}" for node, (*_, controller) in enumerate(triples, 1)
        )
        shared = self._shared_settings(brokers, voters) | dict(settings or {})
        self.brokers = tuple(
            Broker(self, node, triple, shared | self._own_settings(node, triple))
            for node, triple in enumerate(triples, 1)
        )

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers, as clients take them."""
        return ",".join(broker.address for broker in self.brokers)

    def start(self) -> None:
        """Format and start all brokers together. Raises KafkaFailedError and cleans up."""
        cluster_id = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        try:
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda broker: broker.format(cluster_id), self.brokers))
            for broker in self.brokers:
                broker.launch()
            for broker in self.brokers:
                broker.wait()
        except BaseException:
            self.keep_logs = True
            self.close()
            raise

    def close(self) -> None:
        """Stop what runs; remove the data, and the logs unless they are to be kept."""
        for broker in self.brokers:
            broker.terminate()
        for broker in self.brokers:
            broker.stop(CLOSE_SECONDS_MAX)
        self.watchdog.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self.keep_logs:
            shutil.rmtree(self.logs, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _shared_settings(self, brokers: int, voters: str) -> dict[str, str]:
        replicas = str(min(brokers, 3))
        in_sync = str(min(brokers, 2))
        return {
            "controller.quorum.voters": voters,
            "listener.security.protocol.map": (
                f"CLIENT:{self.security.protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": in_sync,
            **self.security.broker_settings(),
        }

    def _own_settings(self, node_id: int, ports: tuple[int, ...]) -> dict[str, str]:
        client, internal, controller = ports
        serves = f"CLIENT://{HOST}:{client},INTERNAL://{HOST}:{internal}"
        return {
            "node.id": str(node_id),
            "listeners": f"{serves},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": serves,
            "log.dirs": str(self.folder / f"data-{node_id}"),
        }


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, from a range that the system gives to no client."""
    found: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                continue
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise KafkaFailedError("no free port")
