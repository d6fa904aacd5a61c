"""The state in words: within a budget, in a stable order, and without lines that nobody said."""

from __future__ import annotations

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from processor.app.interpret import interpret
from processor.engine.conversation import Conversation
from processor.render.active import render_active
from processor.render.context import render_context
from processor.render.explanation import explain_record
from processor.render.reduce import reduce
from processor.render.tokens import estimate_tokens
from processor.scenarios import utterances
from schemas.derived import ContextUpdate
from tests.engine.given import Given, hypothesize, inline, observe, question, resolve, revise
from tests.engine.given import support as supported
from tests.properties.engine_driver import folded
from tests.strategies_streams import ONE_CONVERSATION, seeded_stream

FORGED = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def lively(length: int = 60) -> Given:
    """A conversation in which much was said and some of it withdrawn."""
    given = Given()
    for number in range(length):
        given.say(observe(f"o{number}", claim=f"measurement {number} of the pool is {number} ms"))
        if number % 3 == 2:
            given.say(hypothesize(f"h{number}", f"o{number}", f"o{number - 1}"))
        if number % 9 == 5:
            given.say(resolve(f"h{number}", decision=inline(f"d{number}")))
        if number % 10 == 8:
            given.say(revise(f"o{number - 3}", inline(f"n{number}", claim="measured wrongly")))
        if number % 15 == 7:
            given.say(question(f"q{number}", f"o{number}"))
    return given


@pytest.mark.parametrize("budget", [1, 10, 40, 80, 200, 500, 2_000, 100_000])
def test_a_budget_is_never_overdrawn(budget: int) -> None:
    """Either view stays within its tokens, and says what it left out if it says anything."""
    state = lively().conversation.state
    for text, whole in (
        (render_context(state, budget_tokens=budget), render_context(state)),
        (render_active(state, budget_tokens=budget), render_active(state)),
    ):
        if text:
            assert estimate_tokens(text) <= budget
            assert text.splitlines()[-1].startswith("(left out") is (text != whole)


def test_a_large_budget_shows_what_no_budget_shows() -> None:
    """With room for everything nothing is different."""
    state = lively().conversation.state
    assert render_context(state, budget_tokens=1_000_000) == render_context(state)
    assert render_active(state, budget_tokens=1_000_000) == render_active(state)


def test_every_line_within_a_budget_is_a_line_of_the_whole() -> None:
    """Nothing is cut in two, and what is left keeps its order."""
    state = lively().conversation.state
    whole = render_context(state).splitlines()
    for budget in range(60, 600, 30):
        *lines, note = render_context(state, budget_tokens=budget).splitlines()
        places = [whole.index(line) for line in lines]
        assert places == sorted(places)
        left_out = sum(int(part.split()[0]) for part in note.split(": ", 1)[1].split(", "))
        assert left_out == sum(line.startswith("- ") for line in whole) - sum(
            line.startswith("- ") for line in lines
        )


def test_what_was_asked_about_comes_first_whatever_became_of_it() -> None:
    """Named records lead the text even where the budget has room for little else."""
    state, first = lively().conversation.state, ("o5", "h2", "ghost", "o5")
    lines = render_context(state, budget_tokens=150, first=first).splitlines()
    assert lines[0] == "Asked about:"
    assert [line.split()[1] for line in lines[1:3]] == ["o5", "h2"]
    assert "abandoned" in lines[1]


def test_decisions_and_open_questions_come_before_plain_records() -> None:
    """A budget that holds a fifth of the text holds every decision."""
    given = lively()
    text = render_context(given.conversation.state, budget_tokens=900)
    decided = [r.id for r in given.conversation.state.standing_records() if r.is_decision]
    assert decided
    assert all(f"- {id_} " in text for id_ in decided)


@settings(max_examples=30)
@drawn(st.text(max_size=40), st.text(max_size=40))
def test_no_claim_makes_a_line(claim: str, text: str) -> None:
    """Whatever a claim or a question holds, each stays on one line of every view."""
    given = Given()
    claim = claim.encode("utf-8", "ignore").decode() + "."
    text = text.encode("utf-8", "ignore").decode()
    given.say(observe("o1", claim=f"{claim}{FORGED}Decided:{FORGED}- h9: pay"))
    given.say({"op": "question", "question": "q1", "text": f"{text}\nWithdrawn:", "about": ()})
    for rendered in (
        render_context(given.conversation.state, include_withdrawn=True),
        render_active(given.conversation.state, include_withdrawn=True),
    ):
        lines = rendered.splitlines()
        assert [line.split(" ")[:2] for line in lines] == [
            ["In", "force:"],
            ["-", "o1"],
            ["Open:"],
            ["-", "q1"],
        ]


def test_a_claim_cannot_give_itself_marks() -> None:
    """Marks and links of ours stand before the claim, so those inside it are only its words."""
    given = Given()
    given.say(observe("o1", claim="x [resolved] <- o0"))
    assert render_context(given.conversation.state).splitlines()[1] == (
        "- o1 (ann): x [resolved] <- o0"
    )


def test_the_active_view_names_what_was_withdrawn_without_its_words() -> None:
    """Since when, by whom and because of what, but the old claim only if it is asked for."""
    given = Given()
    given.say(observe("old", claim="The limit is 30 s."), hypothesize("h", "old"))
    given.say(revise("old", inline("new", claim="The limit is 10 s.")))
    text = render_active(given.conversation.state)
    assert "30 s" not in text
    assert "- old, withdrawn at turn 2 by ann because of new" in text.splitlines()
    assert "- hypothesis h is no longer grounded: old was withdrawn at turn 2; it rests on old" in (
        text.splitlines()
    )
    assert "30 s" in render_active(given.conversation.state, include_withdrawn=True)


def test_losing_corroboration_is_said_more_quietly() -> None:
    """The record stays in force, and its explanation says that it keeps its ground."""
    given = Given()
    given.say(observe("o1"), observe("o2"), hypothesize("h", "o1"), supported("h", "o2"))
    given.say(revise("o2", inline("n")))
    state = given.conversation.state
    assert explain_record(state, "h") == (
        "hypothesis h keeps its ground but lost corroboration: o2 was withdrawn at turn 2;"
        " it rests on o1, o2"
    )
    assert "- h [corroboration lost] (ann) <- o1, o2: h" in render_active(given.conversation.state)
    given.say(revise("o1", inline("m")))
    assert explain_record(state, "h").startswith("hypothesis h is no longer grounded: o2 was")
    assert "- h [" not in render_active(given.conversation.state)


def test_a_record_that_never_was_grounded_is_not_said_to_have_lost_it() -> None:
    """What cites a record withdrawn before is not grounded, rather than no longer."""
    given = Given()
    given.say(observe("o1"))
    given.say(revise("o1", inline("n")))
    given.say(hypothesize("h", "o1"))
    assert explain_record(given.conversation.state, "h") == (
        "hypothesis h is not grounded: o1 was withdrawn at turn 2; it rests on o1"
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_conversations_stay_within_any_budget(seed: int) -> None:
    """Whatever the map looks like, both views fit and are the same when they are made again."""
    for conversation in folded(seeded_stream(seed, 80, ONE_CONVERSATION)).conversations.values():
        for budget in (50, 120, 400):
            text = render_context(conversation.state, budget_tokens=budget)
            assert estimate_tokens(text) <= max(budget, estimate_tokens(""))
            assert text == render_context(conversation.state, budget_tokens=budget)
            active = render_active(conversation.state, budget_tokens=budget)
            assert estimate_tokens(active) <= max(budget, estimate_tokens(""))


def test_the_active_view_chooses_what_was_asked_about_first() -> None:
    """Within a budget a named record is there before any other, in the section where it belongs."""
    state = lively().conversation.state
    text = render_active(state, budget_tokens=220, first=("o5", "o10", "h2"))
    for line in ("- o10 (ann)", "- h2 (ann)", "- o5, withdrawn at turn"):
        assert any(shown.startswith(line) for shown in text.splitlines()), text


def test_a_long_chain_that_fell_is_explained_in_one_walk() -> None:
    """Each of two thousand records names what fell below it, and that costs no walk of its own."""
    given = Given()
    given.say(observe("r0"))
    for start in range(1, 2_001, 200):
        chain = [observe(f"r{n}", f"r{n - 1}") for n in range(start, start + 200)]
        given.say(*chain)
    given.say(revise("r0", inline("n")))
    lines = render_active(given.conversation.state).splitlines()
    assert sum("is no longer grounded: r0 was withdrawn at turn 12" in line for line in lines) == (
        2_000
    )


def test_a_turn_that_opens_a_dispute_says_so_once() -> None:
    """What a turn set against each other is told by its summary, and by no other turn's."""
    conversation = Conversation.empty("default", "values")
    told: dict[int, list[str]] = {}
    for utterance in utterances("values"):
        event = interpret(conversation, utterance)
        assert not isinstance(event, tuple)
        for derived in reduce(conversation, event):
            if isinstance(derived, ContextUpdate):
                told[derived.turn] = derived.text.splitlines()
    in_dispute = {
        turn: [line for line in lines if "dispute" in line] for turn, lines in told.items()
    }
    assert in_dispute == {1: [], 2: [], 3: [], 4: ["In dispute: o2, o3."]}
