"""A transport whose steps end at a deadline, however many they are and however slowly bytes come.

A timeout of httpx2 begins anew with connecting, TLS, writing, and every read, so headers that come
byte by byte hold whoever waits for them. Here the thread that waits says until when, and each step
gets what is left.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any, final

import httpcore2
import httpx2

_PIECE_BYTES = 65_536


@final
class Until(threading.local):
    """When the exchange of this thread is over, by `time.monotonic`."""

    at = float("inf")

    def left(self, timeout: float | None) -> float:
        """What a step may take, in seconds. Raises httpcore2.ReadTimeout if nothing is left."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the deadline has passed")
        return left if timeout is None else min(timeout, left)


@final
class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, until: Until) -> None:
        self._stream = stream
        self._until = until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._until.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE_BYTES):  # a timeout is for what is sent at once
            piece = buffer[start : start + _PIECE_BYTES]
            self._stream.write(piece, self._until.left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        left = self._until.left(timeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._until)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


@final
class _Backend(httpcore2.NetworkBackend):
    def __init__(self, backend: httpcore2.NetworkBackend, until: Until) -> None:
        self._backend = backend
        self._until = until

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        where = host, port, self._until.left(timeout), local_address, socket_options
        return _Stream(self._backend.connect_tcp(*where), self._until)

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


def client_until(until: Until, transport: httpx2.BaseTransport | None) -> httpx2.Client:
    """A client whose steps end there; one with a transport of its user's does as that does."""
    client = httpx2.Client(transport=transport)
    if transport is None:  # httpx2 has no argument for what httpcore2 calls `network_backend`
        for each in (client._transport, *client._mounts.values()):
            if isinstance(each, httpx2.HTTPTransport):
                pool = each._pool
                pool._network_backend = _Backend(pool._network_backend, until)
    return client
