"""A run told for people: turn by turn what happened, and a summary at the end."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never, final

from rich.console import Console
from rich.text import Text

from processor.app.dead_letters import DeadLetter
from processor.app.one_process import Processed, Repeated
from processor.cli.output import printable
from processor.engine.conversation import Conversation
from processor.engine.messages import failure_message, named
from schemas.derived import (
    ContextUpdate,
    DerivedEvent,
    Outcome,
    RetractionImpact,
    TurnEvent,
    UngroundedAlert,
    VerdictEvent,
)
from schemas.ids import conversation_key
from schemas.log import CandidateAppended, ConversationSetUp, LogEvent, OperationsAppended

_MARKS = {
    Outcome.GROUNDED: ("✓", "bold green"),
    Outcome.UNGROUNDED: ("✗", "bold red"),
    Outcome.ABSTAIN: ("?", "bold yellow"),
    Outcome.PENDING: ("…", "bold yellow"),
    Outcome.UNVERIFIED: ("-", "yellow"),
    Outcome.NO_CLAIMS: ("-", "dim"),
}
_CHANGES = {
    "New ": ("+", "green"),
    "Settled:": ("=", "bold green"),
    "Weakened ": ("↓", "magenta"),
    "Abandoned ": ("✗", "magenta"),
    "In dispute:": ("?", "yellow"),
}
_TEXT_CHARS = 160


@final
class Story:
    """Tells the results of a run as they come and counts them."""

    def __init__(self, kept_in: Path | None, silent: bool) -> None:
        self._kept_in = kept_in
        self._console = Console(quiet=silent, highlight=False, soft_wrap=True)
        self._last: Conversation | None = None
        self._conversations = 0
        self._is_only_one = True
        self.first_bad: DeadLetter | None = None
        self.bad_lines = 0
        self.repeated = 0
        self.turns = 0
        self.failed_turns = 0
        self.impacts = 0
        self.alerts = 0
        self.rejections = 0
        self.ungrounded_claims = 0
        self.outcomes: dict[Outcome, int] = {}

    def tell(self, result: Processed | Repeated | DeadLetter) -> None:
        """Show one result."""
        match result:
            case Processed():
                self._tell_processed(result)
            case Repeated():
                self.repeated += 1
            case DeadLetter():
                self.bad_lines += 1
                self.first_bad = self.first_bad or result
                self._print("! ", "bold red", f"line {result.line.number}: {result.reason}")
            case _:
                assert_never(result)

    def close(self) -> None:
        """Show the summary."""
        self._console.print()
        for title, value in self._totals():
            self._console.print(Text.assemble((f"{title:<20}", "dim"), value))
        if self._kept_in is None:
            hint = "Nothing was kept; --out DIR keeps a store to ask about any turn."
            self._console.print(hint, style="dim")

    def _totals(self) -> list[tuple[str, str]]:
        totals = [
            ("new conversations", f"{self._conversations:,}"),
            ("turns", f"{self.turns:,}" + _extra(self.failed_turns, "not interpreted")),
            ("refused operations", f"{self.rejections:,}"),
            ("retraction impacts", f"{self.impacts:,}"),
            ("alerts", f"{self.alerts:,}"),
        ]
        if self.outcomes:
            counts = ", ".join(f"{count:,} {o}" for o, count in sorted(self.outcomes.items()))
            totals.append(("verdicts", counts))
        if self.repeated:
            totals.append(("seen before", f"{self.repeated:,} utterances, nothing done"))
        if self.bad_lines:
            totals.append(("bad lines", f"{self.bad_lines:,}"))
        conversation = self._last
        if conversation is not None and self._is_only_one:
            records = conversation.state.records.values()
            standing = sum(1 for record in records if record.stands)
            totals.append(("records", f"{len(records):,}, {standing:,} in good standing"))
            totals.append(("digest", conversation.digest))
            totals.append(("state digest", conversation.state_digest()))
        if self._kept_in is not None:
            totals.append(("kept in", str(self._kept_in)))
        return totals

    def _tell_processed(self, result: Processed) -> None:
        utterance = result.utterance
        last, self._last = self._last, result.conversation
        self._conversations += result.event.sequence == 1
        if last is None or _name(last) != _name(self._last):
            self._is_only_one = last is None
            self._show(Text(f"\n{_name(self._last)}", style="bold underline"))
        self._show(_heading(result.event, result))
        if utterance.text:
            self._print("    ", "", _shortened(utterance.text), "italic dim")
        # What is new comes before what it brings down; the summary of it is emitted last.
        for event in sorted(result.derived, key=lambda e: not isinstance(e, ContextUpdate)):
            self._tell_event(event)

    def _tell_event(self, event: DerivedEvent) -> None:
        match event:
            case TurnEvent():
                self._tell_turn(event)
            case VerdictEvent():
                self._tell_verdict(event)
            case RetractionImpact():
                self.impacts += 1
                self._print("  ▼ ", "bold magenta", event.message)
            case UngroundedAlert():
                self.alerts += 1
                self._print("  ‼ ", "bold red", f"alert ({event.severity}): {event.message}")
            case ContextUpdate():
                for line in event.text.splitlines():
                    for start, (mark, style) in _CHANGES.items():
                        if line.startswith(start):
                            self._print(f"  {mark} ", style, line)
            case _:
                assert_never(event)

    def _tell_turn(self, event: TurnEvent) -> None:
        self.turns += 1
        self.rejections += len(event.rejections)
        if event.failed is not None:
            self.failed_turns += 1
            self._print("  ! ", "bold yellow", f"not interpreted: {event.failed}")
        for rejection in event.rejections:
            what = f"operation {rejection.index} refused ({rejection.code}): {rejection.reason}"
            self._print("  ✗ ", "yellow", what)
        for note in event.notes:
            self._print("  ~ ", "yellow", note.text)
        if event.ungrounded:
            self._print("  ○ ", "magenta", f"no longer grounded: {named(event.ungrounded)}")

    def _tell_verdict(self, event: VerdictEvent) -> None:
        self.outcomes[event.outcome] = self.outcomes.get(event.outcome, 0) + 1
        mark, style = _MARKS[event.outcome]
        if event.candidate is None:
            what = f"decision {event.record}"
        else:
            if event.outcome is Outcome.UNGROUNDED:
                self.ungrounded_claims += 1
            what = _shortened(event.candidate.text) or named(event.candidate.records) or "draft"
        said = [f"{event.outcome}: {what}"]
        if event.support:
            said.append(f"rests on {named(event.support)}")
        if event.disputed:
            said.append(f"in dispute: {named(event.disputed)}")
        if event.reason is not None:
            said.append(event.reason.replace("_", " "))
        said += [failure_message(failure) for failure in event.failures[:3]]
        if not event.coverage.complete:
            said.append(f"turns not interpreted: {event.coverage.missing_count:,}")
        self._print(f"  {mark} ", style, "; ".join(said))

    def _print(self, mark: str, style: str, what: str, what_style: str = "") -> None:
        if not self._console.quiet:
            self._show(Text.assemble((mark, style), (printable(what), what_style)))

    def _show(self, line: Text) -> None:
        if not self._console.quiet:  # which would lay the line out all the same
            self._console.print(line)


def _heading(event: LogEvent, result: Processed) -> Text:
    match event:
        case CandidateAppended():
            what = "draft"
        case ConversationSetUp():
            what = "setup"
        case _:
            what = f"T{result.conversation.turn}"
    operations = ""
    if isinstance(event, OperationsAppended):
        operations = ", ".join(operation.op for operation in event.operations) or "no operations"
    text = Text(f"{what} ", style="bold cyan")
    text.append(event.speaker, style="bold")
    if operations:
        text.append(f"  {operations}", style="dim")
    return text


def _name(conversation: Conversation) -> str:
    return conversation_key(conversation.tenant_id, conversation.conversation_id)


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT_CHARS else f"{text[:_TEXT_CHARS]}…"


def _extra(count: int, what: str) -> str:
    return f", {count:,} {what}" if count else ""
