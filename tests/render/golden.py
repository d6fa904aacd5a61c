"""What the renderer makes of the scenarios, as files: `python -m tests.render.golden` writes them.

Read the difference before committing it: a model reads these words.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from processor.engine.conversation import Conversation
from processor.render.active import render_active
from processor.render.context import render_context
from processor.render.explanation import explain_record
from processor.scenarios import utterances
from tests.scenarios.native_log import updates_of

FOLDER = Path(__file__).parent / "golden"
SCENARIOS = ("incident", "deliberation")
BUDGETS = (150, 400)


def rendered() -> dict[str, str]:
    """The content of each golden file by its name."""
    return {
        f"{scenario}.{name}.txt": f"{text}\n"
        for scenario in SCENARIOS
        for name, text in _of(scenario)
    }


def _of(scenario: str) -> Iterator[tuple[str, str]]:
    conversation, updates = updates_of(utterances(scenario))
    yield "updates", "\n\n".join(f"turn {update.turn}\n{update.text}" for update in updates)
    yield "full", render_context(conversation.state)
    yield "withdrawn", render_context(conversation.state, include_withdrawn=True)
    yield "active", render_active(conversation.state)
    for budget in BUDGETS:
        yield f"full-{budget}", render_context(conversation.state, budget_tokens=budget)
        yield f"active-{budget}", render_active(conversation.state, budget_tokens=budget)
    asked = tuple(conversation.state.records)[2:4]
    yield "asked", render_context(conversation.state, budget_tokens=BUDGETS[0], first=asked)
    yield "explained", _explained(conversation)


def _explained(conversation: Conversation) -> str:
    return "\n".join(explain_record(conversation.state, id_) for id_ in conversation.state.records)


def main() -> None:
    """Write every golden file, and remove those that are none any more."""
    FOLDER.mkdir(exist_ok=True)
    for stale in FOLDER.glob("*.txt"):
        stale.unlink()
    for name, text in rendered().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
