"""Connections cost something before any token is seen: number and patience are bounded."""

from __future__ import annotations

import asyncio

import pytest

from processor.app.web import server
from tests.web.fake import Client, FakeConversations, run, serving


async def opened(
    client: Client, sent: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which something was sent."""
    port = int(client.address.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    await writer.drain()
    return reader, writer


def test_a_request_that_never_becomes_whole_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a header holds a connection for a while only, whether or not more of it drips in."""
    monkeypatch.setattr(server, "IDLE_SECONDS_MAX", 0.3)
    monkeypatch.setattr(server, "WATCH_SECONDS", 0.05)

    async def main() -> None:
        async with serving(FakeConversations()) as client:
            half = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: "
            slow = [await opened(client, half) for _ in range(5)]
            async with asyncio.timeout(5):
                for reader, writer in slow:
                    assert await reader.read() == b""
                    writer.close()
            assert (await client.get("/livez"))[0] == 200

    run(main())


def test_too_many_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond the bound; those within it are served, and a place that is free is used."""
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 3)

    async def main() -> None:
        async with serving(FakeConversations()) as client:
            held = [await opened(client) for _ in range(3)]
            reader, writer = await opened(client, b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(5):
                assert b"200 OK" not in await reader.read()
            writer.close()
            held[0][1].close()
            await asyncio.sleep(0.1)
            assert (await client.get("/livez"))[0] == 200
            for _, writer in held[1:]:
                writer.close()

    run(main())


@pytest.mark.parametrize(
    "sent", [b"GARBAGE\r\n\r\n", b"GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n"]
)
def test_no_answer_tells_versions(sent: bytes) -> None:
    """Neither that to a request, nor that to what is no HTTP."""

    async def main() -> None:
        async with serving(FakeConversations()) as client:
            reader, writer = await opened(client, sent)
            async with asyncio.timeout(5):
                said = await reader.read()
            writer.close()
            assert [
                line for line in said.split(b"\r\n") if line.lower().startswith(b"server:")
            ] == [b"Server: standfast"]

    run(main())
