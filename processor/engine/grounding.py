"""The grounded flags: the answer of every check, kept while the map changes.

A record is grounded iff every record reachable from it over support links, itself included, is in
good standing (Lemma 2.1). Standing only ever leaves S_t and links are only ever added, so the
answer can only turn from yes to no. Two flags per record hold the answer for all links (`grounded`)
and for the links that are not corroboration (`core_grounded`). When a record falls, the fall is
pushed along the reverse links and stops where the answer is no already: each flag falls at most
once, so a whole conversation costs O(records + links) and a verdict is one lookup.
"""

from __future__ import annotations

from processor.engine.record import Record


def push_strict(fallen: Record, lost: list[Record]) -> None:
    """Turn the strict answer of a record, and of all that rests on it, to no; append them."""
    if not fallen.grounded:
        return
    fallen.grounded = False
    lost.append(fallen)
    pending = [fallen]
    while pending:
        for dependent in pending.pop().dependents:
            if dependent.grounded:
                dependent.grounded = False
                lost.append(dependent)
                pending.append(dependent)


def push_core(fallen: Record, lost: list[Record]) -> None:
    """The same for the answer that ignores corroboration links."""
    if not fallen.core_grounded:
        return
    fallen.core_grounded = False
    lost.append(fallen)
    pending = [fallen]
    while pending:
        record = pending.pop()
        corroborated = dict.fromkeys(record.corroborated)
        for dependent in record.dependents:
            if dependent.core_grounded and dependent not in corroborated:
                dependent.core_grounded = False
                lost.append(dependent)
                pending.append(dependent)
