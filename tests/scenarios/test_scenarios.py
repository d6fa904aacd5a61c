"""Every scenario comes out as its expectations say, turn by turn and event by event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, TypeVar

import pytest

from processor import scenarios
from processor.engine.conversation import Conversation
from processor.engine.plausibility.syntax import parse
from processor.engine.retraction import affected_by_ids
from processor.engine.state import State
from processor.scenarios.expected import (
    ExpectedAffected,
    ExpectedAlert,
    ExpectedEvents,
    ExpectedImpact,
    ExpectedState,
    ExpectedVerdict,
    ExpectedWorlds,
)
from schemas.derived import DerivedEvent, RetractionImpact, TurnEvent, UngroundedAlert, VerdictEvent
from schemas.utterance import UtteranceKind
from tests.scenarios.native_log import Said, fold_utterances

EventT = TypeVar("EventT")

REAL_WORLD = "m_a & m_b & !m_c"
"""What the children's foreheads are like."""


def fold_scenario(name: str) -> Iterator[Said]:
    """Fold a scenario utterance by utterance."""
    return fold_utterances(scenarios.utterances(name))


def holds(state: State, text: str) -> bool:
    """Whether the formula is true at every world of the law."""
    return state.model.holds(parse(text))


def aware_agents(state: State, proposition: str) -> tuple[str, ...]:
    """The agents of the conversation who have the proposition in mind."""
    return tuple(a for a in state.hearers(None) if state.awareness.is_aware(a, proposition))


def possible_worlds(state: State, asked: ExpectedWorlds) -> ExpectedWorlds:
    """The valuations of the asked variables that the law allows, in the order asked."""
    allowed = []
    for truth in product((True, False), repeat=len(asked.variables)):
        literals = [
            name if is_true else f"!{name}"
            for name, is_true in zip(asked.variables, truth, strict=True)
        ]
        if not holds(state, f"!({' & '.join(literals)})"):
            allowed.append(tuple(n for n in literals if not n.startswith("!")))
    return ExpectedWorlds(variables=asked.variables, true_in=tuple(allowed))


def affected(state: State, id_: str) -> ExpectedAffected:
    """The engine's report on a withdrawal, in the form of an expectation."""
    return ExpectedAffected.model_validate(affected_by_ids(state, (id_,))._asdict())


ANSWERS: dict[str, Callable[[State, Any], object]] = {
    "standing": lambda state, asked: {id_: state.records[id_].standing for id_ in asked},
    "kinds": lambda state, asked: {id_: state.records[id_].kind for id_ in asked},
    "links": lambda state, asked: {
        id_: {support.id: kind for support, kind in state.records[id_].links()} for id_ in asked
    },
    "attacks": lambda state, _: tuple(state.attacks),
    "good_standing": lambda state, _: ascending(record.id for record in state.standing_records()),
    "grounded": lambda state, _: ascending(r.id for r in state.records.values() if r.grounded),
    "open_problems": lambda state, _: ascending(problem.id for problem in state.open_problems()),
    "disputed": lambda state, _: ascending(state.disputed),
    "commitments": lambda state, asked: {
        agent: ascending(state.commitments(agent)) for agent in asked
    },
    "aware": lambda state, asked: {name: aware_agents(state, name) for name in asked},
    "worlds": possible_worlds,
    "holds": lambda state, asked: {text: holds(state, text) for text in asked},
    "affected": lambda state, asked: {id_: affected(state, id_) for id_ in asked},
}
"""Field of an expected state -> what the engine says, in the same form."""


def ascending(ids: Iterable[str]) -> tuple[str, ...]:
    """Ids as the expectations list them."""
    return tuple(sorted(ids))


def of_type(events: Iterable[DerivedEvent], kind: type[EventT]) -> list[EventT]:
    """The events of one type, in order."""
    return [event for event in events if isinstance(event, kind)]


def emitted(events: tuple[DerivedEvent, ...]) -> ExpectedEvents:
    """What a statement emitted, in the form of an expectation."""
    (turn,) = of_type(events, TurnEvent)
    return ExpectedEvents(
        ungrounded=turn.ungrounded,
        notes=tuple(note.code for note in turn.notes),
        impacts=tuple(
            ExpectedImpact.model_validate({n: getattr(e, n) for n in ExpectedImpact.model_fields})
            for e in of_type(events, RetractionImpact)
        ),
        alerts=tuple(
            ExpectedAlert.model_validate({n: getattr(e, n) for n in ExpectedAlert.model_fields})
            for e in of_type(events, UngroundedAlert)
        ),
    )


def answered(events: tuple[DerivedEvent, ...]) -> tuple[ExpectedVerdict, ...]:
    """The verdicts on a candidate's claims, in the form of expectations."""
    return tuple(
        ExpectedVerdict.model_validate({n: getattr(e, n) for n in ExpectedVerdict.model_fields})
        for e in of_type(events, VerdictEvent)
    )


def check_state(conversation: Conversation, asked: ExpectedState) -> None:
    """Compare every field that is given."""
    for name, answer in ANSWERS.items():
        want = getattr(asked, name)
        if want is not None:
            assert answer(conversation.state, want) == want, f"turn {conversation.turn}: {name}"


def test_every_field_of_an_expected_state_is_checked() -> None:
    """The runner has an answer for each field of the format, and for nothing else."""
    assert list(ANSWERS) == list(ExpectedState.model_fields)


@pytest.mark.parametrize("name", scenarios.NAMES)
def test_the_states_are_as_expected(name: str) -> None:
    """After each named turn the map, the model and the queries are what is written down."""
    expected = scenarios.expected(name)
    checked = []
    for utterance, conversation, _ in fold_scenario(name):
        asked = expected.after.get(str(conversation.turn))
        if asked is not None and utterance.kind is not UtteranceKind.CANDIDATE:
            check_state(conversation, asked)
            checked.append(str(conversation.turn))
    assert checked == list(expected.after)
    assert conversation.turn == expected.turns


@pytest.mark.parametrize("name", scenarios.NAMES)
def test_the_turns_emit_what_is_expected(name: str) -> None:
    """No operation is refused; impacts, alerts and notes are those written down, and no others."""
    expected = scenarios.expected(name)
    for utterance, conversation, events in fold_scenario(name):
        if utterance.kind is not UtteranceKind.STATEMENT:
            continue
        (turn,) = of_type(events, TurnEvent)
        assert turn.rejections == ()
        assert turn.applied == tuple(range(len(utterance.operations or ())))
        want = expected.events.get(str(conversation.turn), ExpectedEvents())
        assert emitted(events) == want, f"turn {conversation.turn}"


@pytest.mark.parametrize("name", scenarios.NAMES)
def test_the_candidates_get_the_expected_verdicts(name: str) -> None:
    """Each draft is answered claim by claim as written down, and each ungrounded claim alerts."""
    expected = scenarios.expected(name)
    verdicts = {}
    for utterance, _, events in fold_scenario(name):
        if utterance.kind is UtteranceKind.CANDIDATE:
            verdicts[utterance.utterance_id] = answered(events)
            refused = [v for v in answered(events) if v.outcome == "ungrounded"]
            assert len(of_type(events, UngroundedAlert)) == len(refused)
    assert verdicts == expected.verdicts


def test_checking_drafts_changes_nothing() -> None:
    """The incident with drafts in between is the same map after turn 13 as without them."""
    plain, drafted = (
        {c.turn: c.state_digest() for _, c, _ in fold_scenario(name)}
        for name in ("incident", "incident-with-candidates")
    )
    assert plain == {turn: digest for turn, digest in drafted.items() if turn <= 13}


def test_the_worlds_of_the_muddy_children_go_from_eight_to_one() -> None:
    """|W| is 8, 7, 4, 1 and stays 1; told one after the other it is 8, 7, 6, 2 and stays 2."""
    counts = {
        name: [said.conversation.state.model.world_count() for said in fold_scenario(name)]
        for name in ("muddy-children", "muddy-children-sequential")
    }
    assert counts["muddy-children"] == [8, 7, 4, 1, 1]
    assert counts["muddy-children-sequential"] == [8, 7, 6, 2, 2]


def test_said_one_after_the_other_the_answers_of_a_round_would_be_false() -> None:
    """Alice's answer alone tells Bob, so his "cannot tell" after hers rules the real world out."""
    setup, father, together, *_ = scenarios.utterances("muddy-children")
    apart = [
        together.model_copy(update={"utterance_id": f"apart-{i}", "operations": (operation,)})
        for i, operation in enumerate(together.operations or ())
    ]
    *_, (_, at_once, _) = fold_utterances([setup, father, together])
    *_, (_, after_alice, _) = fold_utterances([setup, father, apart[0]])
    *_, (_, after_bob, _) = fold_utterances([setup, father, *apart[:2]])
    assert not holds(at_once.state, f"!({REAL_WORLD})")
    assert holds(after_alice.state, f"({REAL_WORLD}) -> K_bob m_b")
    assert holds(after_bob.state, f"!({REAL_WORLD})")
