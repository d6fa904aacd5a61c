"""The state as JSON values and as lines: what queries show."""

from __future__ import annotations

from collections.abc import Sequence

from processor.engine.authority import policy_in_force
from processor.engine.conversation import Conversation
from processor.engine.plausibility.syntax import to_text
from processor.engine.record import Happening, Record
from processor.engine.retraction import SupportStep
from processor.engine.state import Problem, State
from processor.engine.verify import grade
from schemas.derived import Standing

View = dict[str, object]

_INDENTED_MAX = 20
"""Levels of a support tree that are indented; a chain of thousands would be mostly blanks."""


def state_view(conversation: Conversation) -> View:
    """The dependency map of a conversation, in the order things were introduced."""
    state = conversation.state
    return {
        "tenant_id": conversation.tenant_id,
        "conversation_id": conversation.conversation_id,
        "turn": conversation.turn,
        "sequence": conversation.sequence,
        "digest": conversation.digest,
        "state_digest": conversation.state_digest(),
        "coverage": conversation.coverage(),
        "policy": policy_in_force(state).version,
        "agents": [{"id": id_, "role": role} for id_, role in state.roles.items()],
        "records": [record_view(state, record) for record in state.records.values()],
        "attacks": [list(attack) for attack in state.attacks],
        "commitments": {agent: state.commitments(agent) for agent in state.introduced},
        "problems": [problem_view(state, problem) for problem in state.problems.values()],
        "open_problems": [problem.id for problem in state.open_problems()],
        "disputed": sorted(state.disputed),
    }


def record_view(state: State, record: Record) -> View:
    """One record with its links, attackers and answers."""
    return {
        "record": record.id,
        "kind": record.kind,
        "claim": record.claim,
        "formula": None if record.formula is None else to_text(record.formula),
        "atoms": record.atoms,
        "speaker": record.speaker,
        "turn": record.turn,
        "standing": record.standing,
        "in_good_standing": record.stands,
        "grounded": record.grounded,
        "grade": grade(record),
        "disputed": record.id in state.disputed,
        "links": [{"record": support.id, "kind": kind} for support, kind in record.links()],
        "attackers": [entry.by for entry in record.happened(Happening.ATTACKED)],
        "answers": record.answers,
    }


def problem_view(state: State, problem: Problem) -> View:
    """A question, or an observation that needs an explanation."""
    return {
        "problem": problem.id,
        "kind": "question" if problem.is_question else "surprise",
        "text": problem.text,
        "about": problem.about,
        "speaker": problem.speaker,
        "turn": problem.turn,
        "answers": problem.answers,
        "open": state.is_open(problem),
    }


def history_view(record: Record) -> list[View]:
    """What happened to a record, its introduction first."""
    introduction: View = {
        "turn": record.turn,
        "happening": Happening.STANDING,
        "op": record.op,
        "by": None,
        "speaker": record.speaker,
        "value": Standing.ACTIVE,
    }
    return [introduction, *(dict(entry._asdict()) for entry in record.trail)]


def why_view(steps: Sequence[SupportStep]) -> list[View]:
    """A support tree as a list, each step with its depth."""
    return [
        {
            "depth": step.depth,
            "record": step.record.id,
            "claim": step.record.claim,
            "standing": step.record.standing,
            "grounded": step.record.grounded,
            "link": step.kind,
            "repeated": step.repeated,
        }
        for step in steps
    ]


def why_line(state: State, step: SupportStep) -> str:
    """A step of a support tree on one line, indented by its depth; a deep one says it in digits."""
    indent = "  " * min(step.depth, _INDENTED_MAX)
    depth = f"({step.depth} deep) " if step.depth > _INDENTED_MAX else ""
    kind = f"{step.kind}: " if step.kind is not None else ""
    again = "  (see above)" if step.repeated else ""
    return f"{indent}{depth}{kind}{record_line(state, step.record, with_links=False)}{again}"


def record_line(state: State, record: Record, *, with_links: bool = True) -> str:
    """One record on one line."""
    marks = [str(record.standing)]
    if not record.grounded:
        marks.append(grade(record).replace("_", " "))
    if record.id in state.disputed:
        marks.append("disputed")
    links = ""
    if with_links and record.supports:
        links = " <- " + ", ".join(f"{support.id} ({kind})" for support, kind in record.links())
    return f"{record.id} [{', '.join(marks)}] {record.speaker}: {record.claim}{links}"
