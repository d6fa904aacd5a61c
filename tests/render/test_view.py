"""Support trees as JSON and as lines, also where they are deep or share their branches."""

from __future__ import annotations

from processor.engine.retraction import why
from processor.render.view import why_line, why_view
from tests.engine.given import Given, observe


def tree_of(given: Given, record: str) -> list[str]:
    """The lines of a record's support tree."""
    state = given.conversation.state
    return [why_line(state, step) for step in why(state.records[record])]


def test_a_support_tree_is_indented() -> None:
    """Each record stands under the one that rests on it."""
    given = Given()
    given.say(observe("a"), observe("b", "a"), observe("c", "b"))
    assert tree_of(given, "c") == [
        "c [active] ann: c",
        "  premise: b [active] ann: b",
        "    premise: a [active] ann: a",
    ]


def test_a_deep_support_tree_says_its_depth_in_digits() -> None:
    """Beyond twenty levels a line grows no wider, so a chain's tree is as long as the chain."""
    given = Given()
    given.say(observe("r0"), *(observe(f"r{n}", f"r{n - 1}") for n in range(1, 200)))
    lines = tree_of(given, "r199")
    assert lines[20] == "  " * 20 + "premise: r179 [active] ann: r179"
    assert lines[21] == "  " * 20 + "(21 deep) premise: r178 [active] ann: r178"
    assert lines[199] == "  " * 20 + "(199 deep) premise: r0 [active] ann: r0"


def test_a_shared_support_is_opened_once() -> None:
    """In a tower of diamonds each record is opened where it comes first, and then referred to."""
    given = Given()
    given.say(observe("l0"), observe("r0"))
    for n in range(1, 30):
        given.say(*(observe(f"{side}{n}", f"l{n - 1}", f"r{n - 1}") for side in "lr"))
    state = given.conversation.state
    steps = why(state.records["l29"])
    assert len(steps) == 1 + sum(len(step.record.supports) for step in steps if not step.repeated)
    assert len({step.record for step in steps}) == 59
    assert [step["repeated"] for step in why_view(steps)].count(False) == 59
    assert tree_of(given, "l29")[-1].endswith("(see above)")
