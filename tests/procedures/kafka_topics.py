"""What `kafka-topics.sh --delete` does, which the fetched parts of Kafka do not have."""

from __future__ import annotations

import argparse
import asyncio
import re

from aiokafka.admin import AIOKafkaAdminClient


async def delete(bootstrap: str, pattern: str) -> None:
    """Delete every topic whose whole name matches, and wait until it is gone."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        named = [name for name in await admin.list_topics() if re.fullmatch(pattern, name)]
        await admin.delete_topics(named)
        while not set(named).isdisjoint(await admin.list_topics()):
            await asyncio.sleep(0.05)
    finally:
        await admin.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--delete", action="store_true", required=True)
    parser.add_argument("--topic", required=True)
    given = parser.parse_args()
    asyncio.run(delete(given.bootstrap_server, given.topic))
