"""Builds the interval rows of a store, and answers any turn from them by one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any, final

import duckdb
import orjson

from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused, advance
from processor.render.view import View, state_view
from replay.batch import insert
from replay.errors import StoreError
from replay.intervals import TABLES, Intervals, Row
from replay.memory_limit import Amount
from replay.reading import SETUP_TYPE, ConversationReader
from replay.store import Store
from schemas.derived import MISSING_TURNS_MAX, Coverage
from schemas.ids import conversation_key
from schemas.wire import decode_log_event

_BEHIND = """
SELECT tenant_id, conversation_id, max(sequence) FROM log
GROUP BY ALL
HAVING (tenant_id, conversation_id, max(sequence)) NOT IN
       (SELECT (tenant_id, conversation_id, sequence) FROM indexed)
ORDER BY tenant_id, conversation_id
"""
_OF_CONVERSATION = "WHERE tenant_id = ? AND conversation_id = ?"
_ROWS_MAX = 20_000


def index(store: Store, on_turns: Callable[[int], None] = lambda _: None) -> int:
    """Make the interval rows of every conversation whose log has grown; how many these are.

    `on_turns` is told how many more turns were gone through. Raises StoreError.
    """
    if store.vault is not None:
        raise StoreError(
            f"{store.path}: is sealed, and interval rows stand in the clear; ask with --turn"
        )
    store.transact(_make_tables, ())
    behind = store.rows(_BEHIND)
    waiting: list[tuple[str, str, int, str]] = []
    rows: dict[str, list[Row]] = {table: [] for table in TABLES}

    def write(connection: duckdb.DuckDBPyConnection) -> None:
        for *ids, _, _ in waiting:
            for table in ("indexed", *TABLES):
                connection.execute(f"DELETE FROM {table} {_OF_CONVERSATION}", ids)
        for table, values in {"indexed": waiting, **rows}.items():
            if values:
                insert(connection, table, [list(column) for column in zip(*values, strict=True)])

    for tenant_id, conversation_id, _ in behind:
        conversation, intervals = _build(store, tenant_id, conversation_id)
        for table, row in intervals.rows():
            rows[table].append(row)
        reached = (conversation.sequence, conversation.digest)
        waiting.append((tenant_id, conversation_id, *reached))
        on_turns(conversation.turn)
        conversation.release()
        if sum(map(len, rows.values())) > _ROWS_MAX:
            store.transact(write, _amounts(rows))
            waiting.clear()
            rows = {table: [] for table in TABLES}
    if waiting:
        store.transact(write, _amounts(rows))
    return len(behind)


def _amounts(rows: dict[str, list[Row]]) -> list[Amount]:
    return [
        Amount(table, len(values), sum(len(str(row)) for row in values))
        for table, values in rows.items()
    ]


def _make_tables(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(_sql("intervals"))


def _build(store: Store, tenant_id: str, conversation_id: str) -> tuple[Conversation, Intervals]:
    conversation = Conversation.empty(tenant_id, conversation_id)
    intervals = Intervals(tenant_id, conversation_id)
    reader = ConversationReader(store.beside(), store.path, tenant_id, conversation_id)
    for stored in reader.events():
        observe(intervals, conversation, stored.event)
    return conversation, intervals


def observe(intervals: Intervals, conversation: Conversation, stored: bytes) -> None:
    """Fold one event and note what it changed. Raises StoreError if it does not fold."""
    event = decode_log_event(stored)
    turn = conversation.turn
    advanced = advance(conversation, event)
    if isinstance(advanced, Refused):
        name = conversation_key(event.tenant_id, event.conversation_id)
        raise StoreError(f"event {event.sequence} of {name} does not fold: {advanced.reason}")
    if event.type == SETUP_TYPE:
        intervals.after_setup(conversation)
    elif conversation.turn > turn:
        change = [] if advanced.outcome is None else advanced.outcome.change
        intervals.after_turn(conversation, change)


def state_at(
    connection: duckdb.DuckDBPyConnection, tenant_id: str, conversation_id: str, turn: int
) -> View | None:
    """The state view after a turn, from the interval rows by one query; None if there is none."""
    rows = connection.execute(
        _sql("state_at"), {"tenant": tenant_id, "conversation": conversation_id, "turn": turn}
    ).fetchall()
    parts = _Parts(rows)
    if parts.place["sequence"] is None:
        if turn > 0:
            return None
        return state_view(Conversation.empty(tenant_id, conversation_id))
    return {
        "tenant_id": tenant_id,
        "conversation_id": conversation_id,
        "turn": turn,
        **parts.place,
        "coverage": _coverage(list(parts.of("missing"))),
        "policy": next(parts.of("policy")),
        "agents": list(parts.of("agent")),
        "records": parts.records,
        "attacks": parts.attacks,
        "commitments": parts.commitments,
        "problems": parts.problems,
        "open_problems": [each["problem"] for each in parts.problems if each["open"]],
        "disputed": sorted(each["record"] for each in parts.records if each["disputed"]),
    }


@final
class _Parts:
    """The rows of a state, put together again."""

    def __init__(self, rows: list[tuple[str, int, str]]) -> None:
        written: dict[str, list[str]] = {}
        for part, _, value in rows:
            written.setdefault(part, []).append(value)
        self._rows: dict[str, list[Any]] = {
            part: orjson.loads(f"[{','.join(values)}]") for part, values in written.items()
        }
        (self.place,) = self.of("turn")
        self.records: list[Any] = list(self.of("record"))
        self.problems: list[Any] = list(self.of("problem"))
        self.attacks: list[Any] = list(self.of("attack"))
        by_id = {record["record"]: record for record in self.records}
        self.commitments: dict[str, list[str]] = {}
        for record in self.records:
            own = self.commitments.setdefault(record["speaker"], [])
            if record.pop("committed"):
                own.append(record["record"])
        for link in self.of("link"):
            by_id[link.pop("of")]["links"].append(link)
        for attacker, target in self.attacks:
            by_id[target]["attackers"].append(attacker)
        for atom in self.of("atom"):
            by_id[atom.pop("record")]["atoms"].append(atom)

    def of(self, part: str) -> Iterator[Any]:
        """The values of one part, in order."""
        yield from self._rows.get(part, ())


def _coverage(missing: list[int]) -> Coverage:
    if not missing:
        return Coverage(complete=True)
    newest = tuple(missing[-MISSING_TURNS_MAX:])
    return Coverage(complete=False, missing_turns=newest, missing_count=len(missing))


@cache
def _sql(name: str) -> str:
    return (files("replay") / "sql" / f"{name}.sql").read_text()
