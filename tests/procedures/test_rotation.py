"""A token is rotated as the runbook says, while a worker serves."""

from __future__ import annotations

from pathlib import Path

import orjson

from tests.faults.gates import LINE as OLD
from tests.faults.gates import TOKEN, addresses, gated, here
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import make_topics, say, wait_until_done
from tests.procedures.runbook import carry_out, commands
from tests.waiting import wait_until
from tests.web.fake import observe, statement, write_tokens


def test_a_token_is_rotated(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Both are let in, then the new one alone; at no moment nobody, and without a restart."""
    bootstrap, (address,) = empty_kafka.bootstrap, addresses(1)
    make_topics(bootstrap)
    write_tokens(tmp_path / "tokens.jsonl", OLD)
    settings = {"STANDFAST_WORKER_TOKENS": str(tmp_path / "tokens.jsonl")}
    words = {"TENANT": "acme", "SHA256": OLD.sha256}
    make, add, remove = commands("Token rotation")
    with gated(bootstrap, tmp_path / "worker.duckdb", address, [], **settings) as worker:

        def let_in(token: str) -> bool:
            status = worker.ask(f"{here('c1')}/state", token).status
            assert status in (200, 401)
            return status == 200

        say(bootstrap, [statement("u1", observe("o1"))])
        wait_until_done(bootstrap)
        assert let_in(TOKEN)
        carry_out(make, tmp_path, **words)
        assert (tmp_path / "new-token").stat().st_mode & 0o077 == 0
        new = (tmp_path / "new-token").read_text().splitlines()[0]
        assert not let_in(new)
        carry_out(add, tmp_path, **words)
        wait_until(lambda: let_in(new))
        assert let_in(TOKEN)
        carry_out(remove, tmp_path, **words)
        wait_until(lambda: not let_in(TOKEN))
        assert let_in(new)
    lines = (tmp_path / "tokens.jsonl").read_bytes().splitlines()
    assert [orjson.loads(line)["tenant"] for line in lines] == ["acme"]
