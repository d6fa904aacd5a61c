"""The ledger of one conversation: the rows of its keys, as a fold over its records."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, MutableMapping
from typing import NamedTuple, final

from processor.evidence.fact import Arrival
from processor.evidence.key import Key
from processor.evidence.row import Entered, Holding, Keep, Row, ahead, enter, withdraw
from processor.evidence.scorer import RULES, Scorer


@final
class Withdrawal(NamedTuple):
    """A record was given up in this turn by an operation that said so."""

    record: str
    turn: int


Event = Arrival | Withdrawal


@final
class Ledger:
    """The rows by key, in the order the keys came; `count` says how many atoms came so far.

    Rows are values, so a branch that may be thrown away costs nothing.

    An arrival that names records in `of` goes to the row of their key, if they have a facet of the
    same attribute that it does not name itself.
    """

    __slots__ = ("count", "keep", "keys_of_record", "rows")

    def __init__(self, keep: Keep = Keep.RELATIONS) -> None:
        self.keep = keep
        self.count = 0
        self.rows: MutableMapping[Key, Row] = {}
        self.keys_of_record: MutableMapping[str, tuple[Key, ...]] = {}

    def branch(self) -> Ledger:
        """The same ledger, for events that may yet be taken back."""
        branch = Ledger(self.keep)
        branch.count = self.count
        branch.rows = ChainMap({}, self.rows)
        branch.keys_of_record = ChainMap({}, self.keys_of_record)
        return branch

    def adopt(self, branch: Ledger) -> None:
        """Keep what came to a branch of this ledger."""
        assert isinstance(branch.rows, ChainMap)
        assert isinstance(branch.keys_of_record, ChainMap)
        self.count = branch.count
        self.rows.update(branch.rows.maps[0])
        self.keys_of_record.update(branch.keys_of_record.maps[0])

    def take(self, event: Event, scorer: Scorer = RULES) -> Entered | None:
        """Fold one event; of an arrival, say what it did."""
        if isinstance(event, Withdrawal):
            for key in self.keys_of_record.get(event.record, ()):
                self.rows[key] = withdraw(self.rows[key], event.record, event.turn, self.keep)
            return None
        self.count += 1
        arrival = self._addressed(event)
        key, record = arrival.fact.key, arrival.fact.record
        entered = enter(self.rows.get(key) or Row(key), arrival, scorer, self.keep)
        self.rows[key] = entered.row
        keys = self.keys_of_record.get(record, ())
        if key not in keys:
            self.keys_of_record[record] = (*keys, key)
        return entered

    def take_all(self, events: Iterable[Event], scorer: Scorer = RULES) -> None:
        """Fold several events."""
        for event in events:
            self.take(event, scorer)

    def live_at(self, arrival: Arrival) -> tuple[Holding, ...]:
        """What is live in the row that an arrival goes to."""
        row = self.rows.get(self._addressed(arrival).fact.key)
        return row.live if row is not None else ()

    def records_ahead(self, arrival: Arrival) -> tuple[str, ...]:
        """The records with values in that row for which an arrival comes too late, each once."""
        fact = self._addressed(arrival).fact
        row = self.rows.get(fact.key) or Row(fact.key)
        return tuple(dict.fromkeys(each.record for each in ahead(row, fact)))

    def _addressed(self, arrival: Arrival) -> Arrival:
        fact = arrival.fact
        if fact.facet is not None or not arrival.of:
            return arrival
        for record in arrival.of:
            for key in self.keys_of_record.get(record, ()):
                if key[:2] == fact.key[:2]:
                    return arrival._replace(fact=fact._replace(key=key))
        return arrival
