"""Audits what is left of erased conversations: their chain, and not what they said.

Nobody can open their events any more. What can be told is that each has the hash stored with it,
that they follow each other without a gap, and that the log says that they are over; in an archive
their messages are compared like all others. This is said in a note, so that no audit is taken for
more than it was.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import final

import duckdb

from replay.audit.findings import Findings
from replay.divergence import Divergence, Where, changed
from replay.sealing import ERASED_TYPE, stored_log
from schemas.ids import conversation_key

_FETCHED_ROWS = 500


@final
@dataclass(slots=True)
class _Chain:
    """What was seen of one conversation."""

    tenant_id: str
    conversation_id: str
    events: int = 0
    reached: int = 0
    is_told: bool = False


def audit_erased(connection: duckdb.DuckDBPyConnection, findings: Findings) -> None:
    """Add what is wrong with the rows of erased conversations, and a note for each of these."""
    log = stored_log(connection)
    if log is None:
        return
    rows = connection.cursor().execute(
        f"SELECT tenant_id, conversation_id, sequence, type, record_hash, event FROM {log} "
        "WHERE standfast_is_erased(tenant_id, conversation_id) "
        "ORDER BY tenant_id, conversation_id, type = ?, sequence",
        [ERASED_TYPE],
    )
    chain: _Chain | None = None
    while page := rows.fetchmany(_FETCHED_ROWS):
        for tenant_id, conversation_id, *row in page:
            if chain is None or (chain.tenant_id, chain.conversation_id) != (
                tenant_id,
                conversation_id,
            ):
                _tell(chain, findings)
                chain = _Chain(tenant_id, conversation_id)
            sequence, kind, record_hash, event = row
            _take(chain, sequence, kind, record_hash, event, findings)
    _tell(chain, findings)


def _take(
    chain: _Chain, sequence: int, kind: str, record_hash: str, event: bytes, findings: Findings
) -> None:
    if kind == ERASED_TYPE:
        chain.is_told = True
        return  # it is in the clear, and folded like any other
    where = Where("log", chain.tenant_id, chain.conversation_id, sequence)
    hashed = hashlib.sha256(event).hexdigest()
    if hashed != record_hash:
        findings.divergences.append(changed(where, "event", record_hash, hashed))
    if sequence <= chain.reached:
        findings.divergences.append(Divergence(where, None, "stands twice in the log"))
        return
    if sequence > chain.reached + 1:
        missing = where._replace(sequence=chain.reached + 1)
        findings.divergences.append(Divergence(missing, None, "is missing"))
    chain.reached = sequence
    chain.events += 1


def _tell(chain: _Chain | None, findings: Findings) -> None:
    if chain is None:
        return
    name = conversation_key(chain.tenant_id, chain.conversation_id)
    what = f"{name} was erased: the chain of its {chain.events:,} events was checked, not what "
    end = "they said" if chain.is_told else "they said; its log does not say so: erase it again"
    findings.notes.append(what + end)
