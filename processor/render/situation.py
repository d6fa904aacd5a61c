"""The state as a model needs it to read an utterance: what matters to it, within a budget.

The text begins with the newest records as they were introduced, in whole blocks: it grows at its
end, and its beginning moves once in `BLOCK_RECORDS` records, so that a provider's cache of prompt
beginnings keeps its worth. Then come the older records and the questions that matter to this
utterance, the values of the keys that it touches, and last the standings, which change most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from processor.engine.conversation import Conversation
from processor.engine.messages import named
from processor.engine.record import Record
from processor.engine.state import Problem, State
from processor.render.relevance import Subject, ranked
from processor.render.tokens import THOUSAND, estimate_tokens, token_thousandths
from processor.render.values import TITLE as VALUES_TITLE
from processor.render.values import value_lines
from schemas.derived import Standing
from schemas.quote import quoted_beginning

BLOCK_RECORDS = 16
CLAIM_CHARS_SHOWN = 400
LINES_KEPT = 4_096
_BLOCKS_SHARE = 3
"""The newest records may take a third of the budget before anything is chosen."""
_VALUES_SHARE = 6
"""The values may take a sixth of the budget."""
_LINE_MIN = 8 * THOUSAND
_MARKS = ("Unexplained", "Weakened", "Given up", "Settled", "In dispute", "Not grounded")
_SECTIONS = ("# Records", "# Earlier records", "# Questions", "# Standing")
_EMPTY, _LEFT_OUT = "(none yet)", "(there are some, and no room to show them)"
_HEADINGS = "".join(f"{title}: \n" for title in (*_SECTIONS, *_MARKS, _LEFT_OUT))


def render_situation(conversation: Conversation, text: str, budget_tokens: int, beside: str) -> str:
    """The state in words, such that with `beside` it takes at most `budget_tokens`.

    `text` is what is about to be read. Empty if not even the headings fit.
    """
    state = conversation.state
    left = THOUSAND * (budget_tokens - estimate_tokens(beside)) - token_thousandths(_HEADINGS)
    if left < 0:
        return ""
    newest = _newest(state, THOUSAND * budget_tokens // _BLOCKS_SHARE)
    while (taken := sum(_cost(state, record) for record in newest)) > left:
        newest = newest[BLOCK_RECORDS:]
    room = min(left - taken, THOUSAND * budget_tokens // _VALUES_SHARE)
    values = value_lines(conversation, text, room, _line_cost)
    taken += sum(map(_line_cost, [VALUES_TITLE, *values])) if values else 0
    chosen = _chosen(conversation, text, left - taken, newest)
    earlier = sorted((r for r in chosen if isinstance(r, Record)), key=lambda r: r.position)
    questions = sorted((q for q in chosen if isinstance(q, Problem)), key=lambda q: q.turn)
    return _written(state, newest, earlier, questions, values)


def _chosen(
    conversation: Conversation, text: str, left: int, newest: Sequence[Record]
) -> list[Subject]:
    """What matters to the text beside the newest records, as much as there is room for."""
    state = conversation.state
    first = newest[0].position if newest else len(state.records)
    chosen: list[Subject] = []
    most = len(newest) + left // _LINE_MIN
    for subject in ranked(state, conversation.turn, text, most):
        if isinstance(subject, Record) and subject.position >= first:
            continue
        cost = _cost(state, subject)
        if cost <= left:
            left -= cost
            chosen.append(subject)
    return chosen


def _newest(state: State, limit: int) -> list[Record]:
    """The newest records in whole blocks, the newest block as far as it has come, oldest first.

    What their lines take never changes, so what was left out once stays out.
    """
    kept: list[Record] = []
    block: list[Record] = []
    for record in reversed(state.records.values()):
        block.append(record)
        limit -= _line_cost(_record_line(record))
        if limit < 0:
            break
        if record.position % BLOCK_RECORDS == 0:
            kept += block
            block = []
    return kept[::-1]


def _written(
    state: State,
    newest: Sequence[Record],
    earlier: Sequence[Record],
    questions: Sequence[Problem],
    values: Sequence[str],
) -> str:
    shown = [*newest, *earlier]
    sections = (
        [_record_line(record) for record in newest],
        [_record_line(record) for record in earlier],
        [_question_line(state, question) for question in questions],
        values,
        list(_standing_lines(state, shown)),
    )
    titles = (*_SECTIONS[:-1], VALUES_TITLE, _SECTIONS[-1])
    titled = zip(titles, sections, strict=True)
    lines = [line for title, part in titled if part for line in (title, *part)]
    if not lines:
        lines = [_SECTIONS[0], _LEFT_OUT if state.records or state.problems else _EMPTY]
    return "\n".join(lines) + "\n\n"


def _record_line(record: Record) -> str:
    premises = [premise.id for premise in record.premises()]
    rests = f" <- {named(premises)}" if premises else ""
    return f"{record.id} {record.kind}, {record.speaker}: {_shown(record.claim)}{rests}"


def _question_line(state: State, question: Problem) -> str:
    about = f" about {named(question.about)}" if question.about else ""
    mark = "open" if state.is_open(question) else "answered"
    return f"{question.id} {mark}, {question.speaker}: {_shown(question.text)}{about}"


def _standing_lines(state: State, shown: Sequence[Record]) -> Iterable[str]:
    groups: dict[str, list[str]] = {mark: [] for mark in _MARKS}
    for record in shown:
        for mark in _marks(state, record):
            groups[mark].append(record.id)
    return (f"{mark}: {', '.join(ids)}" for mark, ids in groups.items() if ids)


def _marks(state: State, record: Record) -> list[str]:
    """What became of a record since it was introduced, if anything."""
    problem = state.problems.get(record.id)
    marks = {
        "Unexplained": problem is not None and state.is_open(problem),
        "Weakened": record.standing is Standing.WEAKENED,
        "Given up": record.standing is Standing.ABANDONED,
        "Settled": record.standing is Standing.RESOLVED,
        "In dispute": record.id in state.disputed,
        "Not grounded": record.stands and not record.grounded,
    }
    return [mark for mark, applies in marks.items() if applies]


def _shown(text: str) -> str:
    return quoted_beginning(text, CLAIM_CHARS_SHOWN)


def _cost(state: State, subject: Subject) -> int:
    """What a subject takes, in thousandths: its line, and its id wherever the standings name it."""
    if isinstance(subject, Problem):
        return _line_cost(_question_line(state, subject))
    line = _line_cost(_record_line(subject))
    marks = _marks(state, subject)
    return line + len(marks) * token_thousandths(f"{subject.id}, ") if marks else line


@lru_cache(maxsize=LINES_KEPT)
def _line_cost(line: str) -> int:
    """What a line takes: most lines are shown turn after turn, and none is longer than 5 kB."""
    return token_thousandths(f"{line}\n")
