"""S3Proxy: a folder served over the S3 protocol, signatures checked, in a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kafka.cluster import HOST, free_ports
from tests.kafka.software import S3_LIBS, java_tool, missing_java
from tests.kafka.watchdog import Watchdog

START_SECONDS_MAX = 60.0
BUCKET = "checkpoints"
KEY = "local-identity"
SECRET = "local-credential"


class S3Server:
    """Has one bucket, whose objects are files in `folder`; a context manager."""

    def __init__(self) -> None:
        assert S3_LIBS.is_dir(), f"there is no S3Proxy in {S3_LIBS}; make kafka fetches it"
        self._root = Path(tempfile.mkdtemp(prefix="standfast-s3-"))
        self.folder = self._root / "data" / BUCKET
        self.folder.mkdir(parents=True)
        (port,) = free_ports(1)
        self.endpoint = f"http://{HOST}:{port}"
        self._watchdog = Watchdog()

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a client reaches it."""
        return environment(self.endpoint)

    def __enter__(self) -> Self:
        java = java_tool("java")
        assert java is not None, missing_java()
        settings = self._root / "s3proxy.properties"
        settings.write_text(
            f"s3proxy.endpoint={self.endpoint}\n"
            "s3proxy.authorization=aws-v2-or-v4\n"
            f"s3proxy.identity={KEY}\n"
            f"s3proxy.credential={SECRET}\n"
            "jclouds.provider=filesystem-nio2\n"
            f"jclouds.filesystem.basedir={self._root / 'data'}\n"
        )
        options = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        command = [java, *options, "-cp", str(S3_LIBS / "*"), "org.gaul.s3proxy.Main"]
        self._log = self._root / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--properties", str(settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._watchdog.watch(self._process.pid)
        self._wait()
        return self

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not _answers(self.endpoint):
            assert self._process.poll() is None, self._log.read_text()[-2_000:]
            assert time.monotonic() < deadline, self._log.read_text()[-2_000:]
            time.sleep(0.1)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._watchdog.forget(self._process.pid)
        self._watchdog.close()
        shutil.rmtree(self._root, ignore_errors=True)


def environment(endpoint: str, secret: str = SECRET) -> dict[str, str]:
    """The usual variables for a service at this address."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
    }


def _answers(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(endpoint, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True  # it asks for a signature
    except OSError:
        return False
