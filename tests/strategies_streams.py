"""Random conversations without formulas: one generator, drawn by Hypothesis or by a seed.

Most operations are meant to succeed, so the naive engine listens along and ids are chosen among
those it knows, with a bias to recent ones, which makes supports deep. The rest is meant to fail:
unknown, repeated and self-referring ids, questions where records belong, operations against fallen
records. The conversations of a stream use the same record ids, so that one leaking into another
would show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Protocol, TypeVar

from hypothesis import strategies as st

from schemas.operations import OPERATION_ORDER
from schemas.policy import Act
from tests.oracles.naive_engine import NaiveEngine
from tests.oracles.naive_map import GOOD, Json

Stream = list[Json]
T = TypeVar("T")

AGENTS = ("ann", "bob", "eve")
ROLES = ("user", "user", "assistant", "tool", "system")
PROPOSITIONS = ("p", "q0", "mis_monitor", "r1")
ONE_CONVERSATION = (("default", "c1"),)
CONVERSATIONS = (("default", "c1"), ("acme", "c1"), ("default", "c2"))
ACTS = tuple(act.value for act in Act)
KINDS = ("observation", "hypothesis", "evidence", "premise", "decision")
START = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)

_RECENT = 4
_OPERATION_WEIGHTS = {
    "observe": 4,
    "hypothesize": 5,
    "support": 4,
    "resolve": 3,
    "undermine": 2,
    "revise": 2,
    "question": 1,
    "expand_awareness": 1,
}
_OPERATIONS = tuple(name for name, weight in _OPERATION_WEIGHTS.items() for _ in range(weight))
_FIRST_OPERATIONS = ("observe", "observe", "hypothesize", "question")


class Dice(Protocol):
    """Where choices come from. The first of `choose` and False of `chance` are the simplest."""

    def choose(self, options: Sequence[T]) -> T:
        """One of the options."""

    def chance(self, percent: int) -> bool:
        """True in about that many of a hundred cases."""


class SeededDice:
    """Choices from a seed, without Hypothesis."""

    def __init__(self, seed: int) -> None:
        """The same seed gives the same stream on every Python."""
        self._random = Random(seed)

    def choose(self, options: Sequence[T]) -> T:
        """One of the options, evenly."""
        return options[self._random.randrange(len(options))]

    def chance(self, percent: int) -> bool:
        """True in that many of a hundred cases."""
        return self._random.randrange(100) >= 100 - percent


class DrawnDice:
    """Choices that Hypothesis makes, remembers and shrinks."""

    def __init__(self, draw: st.DrawFn) -> None:
        """`draw` comes from the composite strategy that holds this object."""
        self._draw = draw

    def choose(self, options: Sequence[T]) -> T:
        """One of the options; shrinks towards the first."""
        return options[self._draw(st.integers(0, len(options) - 1))]

    def chance(self, percent: int) -> bool:
        """True in about that many cases; shrinks towards False."""
        return self._draw(st.integers(0, 99)) >= 100 - percent


@dataclass
class Ids:
    """What a conversation holds, and what the utterance in the making probably adds."""

    records: list[str] = field(default_factory=list)
    standing: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    decided: list[str] = field(default_factory=list)
    utterances: list[str] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    made: int = 0

    def add(self, record: str) -> None:
        """A record that is being introduced."""
        self.records.append(record)
        self.standing.append(record)


class StreamMaker:
    """Makes the utterances of one stream."""

    def __init__(self, dice: Dice, conversations: Sequence[tuple[str, str]]) -> None:
        """Streams over the given (tenant, conversation) pairs."""
        self._dice = dice
        self._conversations = conversations
        self._ids = {key: Ids() for key in conversations}
        self._said = 0
        self._naive = NaiveEngine()

    def utterance(self) -> Json:
        """The next utterance of one of the conversations."""
        key = self._dice.choose(self._conversations)
        utterance = self._utterance(key)
        self._naive.say(utterance)
        known = self._naive.conversations[key].map
        ids = self._ids[key]
        ids.records = list(known.records)
        ids.standing = [name for name in ids.records if known.records[name].standing in GOOD]
        ids.questions = sorted(known.questions)
        decided = (name for name in ids.records if known.records[name].kind == "decision")
        ids.decided = [*decided, *(n for n in ids.records if known.records[n].standing == GOOD[1])]
        return utterance

    def _utterance(self, key: tuple[str, str]) -> Json:
        dice = self._dice
        ids = self._ids[key]
        first = not ids.utterances
        self._said += 1
        name = f"u{self._said}"
        if ids.utterances and dice.chance(4):
            name = dice.choose(ids.utterances)
        ids.utterances.append(name)
        utterance: Json = {
            "tenant_id": key[0],
            "conversation_id": key[1],
            "utterance_id": name,
            "speaker": dice.choose(AGENTS),
            "role": dice.choose(ROLES),
            "text": "said",
            "at": (START + timedelta(seconds=self._said)).isoformat(),
            "kind": "statement",
            "audience": list(self._some(AGENTS)) if dice.chance(15) else None,
        }
        if first and dice.chance(25):
            variables = list(self._some(PROPOSITIONS))
            setup = {"kind": "setup", "audience": None, "variables": variables}
            return {**utterance, **setup, "policy": self._policy() if dice.chance(50) else None}
        if dice.chance(22):
            return {**utterance, "kind": "candidate", "claims": self._claims(ids)}
        if dice.chance(5):
            return utterance
        count = dice.choose((1, 2, 3, 4, 0))
        names = [self._operation_name(ids) for _ in range(count)]
        if not dice.chance(20):
            names.sort(key=OPERATION_ORDER.index)
        return {**utterance, "operations": [self._operation(name, ids) for name in names]}

    def _policy(self) -> Json:
        """A policy that forbids something to somebody, now and then a great deal."""
        dice = self._dice
        forbidden = [
            {
                "roles": list(self._some(ROLES)) if dice.chance(70) else None,
                "acts": list(self._some(ACTS)),
                "kinds": list(self._some(KINDS)) if dice.chance(50) else None,
                "introduced_by": list(self._some(ROLES)) if dice.chance(60) else None,
            }
            for _ in range(dice.choose((1, 0, 2)))
        ]
        deciders = list(self._some(ROLES)) if dice.chance(30) else None
        return {"version": "drawn", "forbidden": forbidden, "deciders": deciders}

    def _claims(self, ids: Ids) -> list[Json] | None:
        dice = self._dice
        if dice.chance(15):
            return None if dice.chance(50) else []
        return [self._claim(ids) for _ in range(dice.choose((1, 2, 3)))]

    def _claim(self, ids: Ids) -> Json:
        dice = self._dice
        if dice.chance(10):
            return {"text": "rests on nothing"}
        if dice.chance(30):
            count = dice.choose((1, 2, 3))
            return {"text": "several", "records": [self._record(ids) for _ in range(count)]}
        return {"text": "one", "record": self._record(ids)}

    def _operation_name(self, ids: Ids) -> str:
        return self._dice.choose(_OPERATIONS if ids.records else _FIRST_OPERATIONS)

    def _operation(self, name: str, ids: Ids) -> Json:
        makers: dict[str, Callable[[Ids], Json]] = {
            "observe": self._observe,
            "hypothesize": self._hypothesize,
            "support": self._support,
            "undermine": self._undermine,
            "revise": self._revise,
            "resolve": self._resolve,
            "question": self._question,
            "expand_awareness": self._expand,
        }
        operation = {"op": name, **makers[name](ids)}
        if self._dice.chance(20):
            operation["speaker"] = self._dice.choose(AGENTS)
        return operation

    def _observe(self, ids: Ids) -> Json:
        own = self._new(ids)
        operation = {"record": own, "claim": "seen", "premises": self._references(ids, own, 2)}
        ids.add(own)
        return operation

    def _hypothesize(self, ids: Ids) -> Json:
        own = self._new(ids)
        operation = {
            "record": own,
            "claim": "perhaps",
            "premises": self._references(ids, own, 3),
            "explains": self._problems(ids, own),
        }
        ids.add(own)
        return operation

    def _support(self, ids: Ids) -> Json:
        target, evidence = self._pair(ids, self._record(ids))
        return {"target": target, "evidence": evidence}

    def _undermine(self, ids: Ids) -> Json:
        target, evidence = self._pair(ids, self._record(ids))
        return {"target": target, "evidence": evidence}

    def _revise(self, ids: Ids) -> Json:
        dice = self._dice
        target = dice.choose(ids.decided) if ids.decided and dice.chance(15) else self._record(ids)
        target, by = self._pair(ids, target)
        return {"target": target, "by": by}

    def _pair(self, ids: Ids, target: str) -> tuple[str, str | Json]:
        """A target and what is brought for or against it; now and then a pair that was before."""
        if ids.pairs and self._dice.chance(15):
            return self._dice.choose(ids.pairs)
        reference = self._against(ids, target)
        ids.pairs.append((target, reference if isinstance(reference, str) else reference["record"]))
        return target, reference

    def _resolve(self, ids: Ids) -> Json:
        dice = self._dice
        target = self._record(ids)
        decision: Json | None = None
        premises = self._references(ids, target, 1)
        if ids.pairs and dice.chance(15):
            target, cited = dice.choose(ids.pairs)
            premises.append(cited)
        if dice.chance(45):
            own = self._new(ids)
            decision = {
                "record": own,
                "claim": "decided",
                "premises": self._references(ids, own, 2),
            }
            ids.add(own)
        subsumes = [self._record(ids) for _ in range(dice.choose((0, 0, 1, 2)))]
        return {
            "target": target,
            "mode": dice.choose(("consensual", "authoritative")),
            "subsumes": subsumes,
            "premises": premises,
            "answers": self._problems(ids, target),
            "decision": decision,
        }

    def _question(self, ids: Ids) -> Json:
        own = self._new(ids)
        about = self._problems(ids, own)
        ids.questions.append(own)
        return {"question": own, "text": "why", "about": about}

    def _expand(self, ids: Ids) -> Json:
        dice = self._dice
        own = self._new(ids) if dice.chance(40) else None
        known = dice.choose(PROPOSITIONS) if dice.chance(80) else self._record(ids)
        operation = {
            "proposition": known,
            "agents": list(self._some(AGENTS)) if dice.chance(50) else None,
            "record": own,
            "reclassifies": self._record(ids) if dice.chance(30) else None,
        }
        if own is not None:
            ids.add(own)
        return operation

    def _new(self, ids: Ids) -> str:
        """An id for something new, now and then one that is taken."""
        if ids.records and self._dice.chance(5):
            return self._dice.choose([*ids.records, *ids.questions])
        ids.made += 1
        return f"r{ids.made}"

    def _record(self, ids: Ids) -> str:
        """An id that probably is a record's; recent ones are likelier."""
        dice = self._dice
        if dice.chance(3):
            return "nobody"
        if ids.questions and dice.chance(3):
            return dice.choose(ids.questions)
        if not ids.records:
            return "r1"
        usual = ids.records if dice.chance(22) or not ids.standing else ids.standing
        return dice.choose(usual[-_RECENT:] if dice.chance(55) else usual)

    def _against(self, ids: Ids, target: str) -> str | Json:
        """Evidence for or against a target, now and then the target itself."""
        if self._dice.chance(4):
            return target if self._dice.chance(50) else {"record": target, "claim": "itself"}
        reference = self._reference(ids, target, depth=2)
        return reference if reference != target else self._reference(ids, target, depth=2)

    def _references(self, ids: Ids, own: str, most: int) -> list[str | Json]:
        count = self._dice.choose(range(most + 1))
        if not ids.records and not self._dice.chance(25):
            count = 0
        return [self._reference(ids, own, depth=2) for _ in range(count)]

    def _reference(self, ids: Ids, own: str, depth: int) -> str | Json:
        """An id, or an inline record with its own premises; `own` is being introduced or named."""
        dice = self._dice
        if dice.chance(2):
            return own
        if depth == 0 or not dice.chance(25):
            return self._record(ids)
        inner = own if dice.chance(2) else self._new(ids)
        count = dice.choose((0, 1, 2))
        premises = [self._reference(ids, inner, depth - 1) for _ in range(count)]
        ids.add(inner)
        return {"record": inner, "claim": "cited", "premises": premises}

    def _problems(self, ids: Ids, own: str) -> list[str]:
        """What an operation explains, answers or asks about: mostly questions."""
        dice = self._dice
        if not dice.chance(35) or not ids.records:
            return []
        if dice.chance(4):
            return [own]
        if ids.questions and dice.chance(75):
            return [dice.choose(ids.questions)]
        return [self._record(ids)]

    def _some(self, options: Sequence[T]) -> Sequence[T]:
        """A part of the options that is not empty."""
        start = self._dice.choose(range(len(options)))
        return options[start : start + self._dice.choose((1, 2))]


def seeded_stream(
    seed: int, length: int, conversations: Sequence[tuple[str, str]] = CONVERSATIONS
) -> Stream:
    """A stream of `length` utterances that depends on nothing but its arguments."""
    maker = StreamMaker(SeededDice(seed), conversations)
    return [maker.utterance() for _ in range(length)]


@st.composite
def streams(
    draw: st.DrawFn,
    length_max: int = 12,
    conversations: Sequence[tuple[str, str]] = CONVERSATIONS,
) -> Stream:
    """Streams of up to `length_max` utterances; they shrink to few and plain ones."""
    maker = StreamMaker(DrawnDice(draw), conversations)
    return [maker.utterance() for _ in range(draw(st.integers(1, length_max)))]
