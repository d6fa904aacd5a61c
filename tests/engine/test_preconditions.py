"""Which operations are refused, with which code, and that the first failing check names it."""

from __future__ import annotations

import pytest

from tests.engine.given import (
    Given,
    Json,
    expand,
    hypothesize,
    inline,
    observe,
    question,
    resolve,
    revise,
    support,
    undermine,
)

# Before each case: a active, w weakened, x abandoned, r resolved, b rests on a, q a question.
CASES: list[tuple[str, Json, str | None]] = [
    ("a new observation", observe("n", "a"), None),
    ("an existing id", observe("a"), "duplicate_record"),
    ("a question's id", observe("q"), "duplicate_record"),
    ("an unknown premise", observe("n", "zz"), "unknown_reference"),
    ("a question as premise", observe("n", "q"), "unknown_reference"),
    ("its own premise", observe("n", "n"), "unknown_reference"),
    ("an inline premise", observe("n", inline("p")), None),
    ("an inline premise that exists", observe("n", inline("a")), "duplicate_record"),
    ("an inline premise with its own id", observe("n", inline("n")), "duplicate_record"),
    ("two inline premises of one id", observe("n", inline("p"), inline("p")), "duplicate_record"),
    ("an id cited after it came inline", observe("n", inline("p"), "p"), None),
    ("an id cited before it came inline", observe("n", "p", inline("p")), "unknown_reference"),
    ("a nested inline premise", observe("n", inline("p", inline("pp", "a"))), None),
    ("an inline record citing itself", observe("n", inline("p", "p")), "unknown_reference"),
    ("unknown before duplicate", observe("n", "zz", inline("a")), "unknown_reference"),
    ("duplicate before unknown", observe("a", "zz"), "duplicate_record"),
    ("explaining a question", hypothesize("n", explains=["q"]), None),
    ("explaining a record", hypothesize("n", explains=["a"]), None),
    ("explaining itself", hypothesize("n", explains=["n"]), "unknown_reference"),
    ("explaining nothing known", hypothesize("n", "a", explains=["zz"]), "unknown_reference"),
    ("support of an active record", support("a", "b"), None),
    ("support of a weakened record", support("w", "a"), None),
    ("support of a resolved record", support("r", "a"), None),
    ("support of an abandoned record", support("x", "a"), "target_abandoned"),
    ("support of an unknown record", support("zz", "a"), "unknown_reference"),
    ("support of a question", support("q", "a"), "unknown_reference"),
    ("support by itself", support("a", "a"), "self_reference"),
    ("support by itself, abandoned", support("x", "x"), "self_reference"),
    ("support by an inline record of its id", support("a", inline("a")), "self_reference"),
    ("support by a weakened record", support("a", "w"), "evidence_not_in_good_standing"),
    ("support by an abandoned record", support("a", "x"), "evidence_not_in_good_standing"),
    ("support by an unknown record", support("a", "zz"), "unknown_reference"),
    ("an abandoned target before unknown evidence", support("x", "zz"), "target_abandoned"),
    ("support by a new record on weak ground", support("a", inline("n", "w")), None),
    ("undermining an active record", undermine("a", "b"), None),
    ("undermining a weakened record", undermine("w", "a"), None),
    ("undermining an abandoned record", undermine("x", "a"), "target_abandoned"),
    ("undermining a resolved record", undermine("r", "a"), "target_resolved"),
    ("undermining by an abandoned record", undermine("a", "x"), None),
    ("undermining by itself", undermine("a", "a"), "self_reference"),
    ("undermining by nobody known", undermine("a", "zz"), "unknown_reference"),
    ("revising an active record", revise("a", "b"), None),
    ("revising a resolved record", revise("r", "a"), None),
    ("revising an abandoned record", revise("x", "a"), None),
    ("revising by an abandoned record", revise("a", "x"), None),
    ("revising by itself", revise("a", "a"), "self_reference"),
    ("revising what is not known", revise("zz", "zz"), "unknown_reference"),
    ("revising by a question", revise("a", "q"), "unknown_reference"),
    ("resolving an active record", resolve("a"), None),
    ("resolving a resolved record", resolve("r"), None),
    ("resolving a weakened record", resolve("w"), "target_not_in_good_standing"),
    ("resolving an abandoned record", resolve("x"), "target_not_in_good_standing"),
    ("subsuming itself", resolve("a", subsumes=["a"]), "self_reference"),
    ("subsuming itself, weakened", resolve("w", subsumes=["w"]), "self_reference"),
    ("itself as premise", resolve("a", premises=["a"]), "self_reference"),
    ("itself as premise of a decision", resolve("a", premises=["a"], decision=inline("d")), None),
    ("subsuming an abandoned record", resolve("a", subsumes=["x"]), None),
    ("subsuming a question", resolve("a", subsumes=["q"]), "unknown_reference"),
    ("a decision that exists", resolve("a", decision=inline("b")), "duplicate_record"),
    (
        "subsumed before decision",
        resolve("a", subsumes=["zz"], decision=inline("b")),
        "unknown_reference",
    ),
    (
        "decision before premises",
        resolve("a", decision=inline("b"), premises=["zz"]),
        "duplicate_record",
    ),
    (
        "a decision's premises before premises",
        resolve("a", decision=inline("d", inline("b")), premises=["zz"]),
        "duplicate_record",
    ),
    (
        "a premise that came with the decision",
        resolve("a", decision=inline("d", inline("p")), premises=["p"]),
        None,
    ),
    (
        "a decision citing a premise that comes later",
        resolve("a", decision=inline("d", "p"), premises=[inline("p")]),
        "unknown_reference",
    ),
    (
        "premises before answers",
        resolve("a", premises=[inline("b")], answers=["zz"]),
        "duplicate_record",
    ),
    (
        "a decision that cites itself",
        resolve("a", decision=inline("d"), premises=["d"]),
        "unknown_reference",
    ),
    (
        "a decision that answers itself",
        resolve("a", decision=inline("d"), answers=["d"]),
        "unknown_reference",
    ),
    ("answering a question", resolve("a", answers=["q"]), None),
    ("answering what is not known", resolve("a", answers=["zz"]), "unknown_reference"),
    ("a question about a record", question("n", "a"), None),
    ("a question about a question", question("n", "q"), None),
    ("a question about itself", question("n", "n"), "unknown_reference"),
    ("a question with a record's id", question("a"), "duplicate_record"),
    ("a new proposition", expand("p"), None),
    ("a known proposition", expand("known"), "already_aware"),
    ("a known proposition with an existing id", expand("known", record="a"), "duplicate_record"),
    ("reclassifying what is not known", expand("p", reclassifies="zz"), "unknown_reference"),
    ("reclassifying a question", expand("p", reclassifies="q"), "unknown_reference"),
]


def prepared() -> Given:
    """A conversation with one record of every standing."""
    given = Given()
    given.say(
        observe("a"), observe("b", "a"), observe("w"), observe("x"), observe("r"), question("q")
    )
    given.say(undermine("w", inline("e1")), revise("x", inline("e2")))
    given.say(resolve("r"), expand("known"))
    return given


@pytest.mark.parametrize(
    ("operation", "code"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_the_first_failing_check_names_the_code(operation: Json, code: str | None) -> None:
    """The operation is applied, or refused with this code and without any change."""
    given = prepared()
    before = given.conversation.state_digest()
    expected = [] if code is None else [(0, code)]
    assert given.refused(operation) == expected
    nothing_new = code is not None or operation == resolve("r")
    assert (given.conversation.state_digest() == before) is nothing_new


def test_a_refused_operation_takes_those_that_cite_it_with_it() -> None:
    """What cites a record that was refused is refused too; the others of the turn apply."""
    given = Given()
    assert given.refused(
        observe("n", "zz"), observe("m", "n"), observe("k"), support("k", "n")
    ) == [(0, "unknown_reference"), (1, "unknown_reference"), (3, "unknown_reference")]
    assert list(given.conversation.state.records) == ["k"]


def test_inline_objects_of_a_refused_operation_are_not_registered() -> None:
    """A refusal found late leaves nothing of what stood before it."""
    given = Given()
    given.refused(observe("n", inline("p"), "zz"))
    assert not given.conversation.state.records


def test_operations_apply_in_the_order_of_their_kinds_and_indexes_stay_as_given() -> None:
    """A support may stand before the observation it cites; its index is its place as given."""
    given = Given()
    turn = given.say(support("h", "o"), hypothesize("h"), observe("o"), support("h", "zz"))
    assert turn.applied == (0, 1, 2)
    assert [rejection.index for rejection in turn.rejections] == [3]


def test_awareness_is_for_those_who_hear() -> None:
    """Bringing something up in private leaves the others unaware of it."""
    given = Given()
    assert given.refused(expand("p", agents=["ann"]), audience=["ann", "bob"]) == []
    state = given.conversation.state
    assert state.awareness.is_aware("ann", "p")
    assert not state.awareness.is_aware("bob", "p")
    assert given.refused(expand("p", agents=["ann"])) == [(0, "already_aware")]
    assert given.refused(expand("p", agents=["carl"]), audience=["ann"]) == [(0, "already_aware")]
    assert given.refused(expand("p")) == []
    assert state.awareness.is_aware("whoever comes later", "p")
