"""Which operations an interpreter finds in the turns of a scenario, beside the gold ones.

A turn is labelled with the kinds of its operations, each once. Every turn is read in the state that
the gold operations of the turns before it left, so one wrong answer does not spoil the next, and
only the first answer counts: what the state would refuse is not asked again. A turn that could not
be read has no label, hence costs recall, and is counted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from processor.engine.authority import authority
from processor.engine.conversation import Conversation
from processor.engine.rules_version import CURRENT_RULES
from processor.engine.setup import run_setup
from processor.engine.turn import run_turn
from processor.interpreter.native import NATIVE, parse_formulas
from processor.interpreter.port import Interpreted, Interpreter, Reading, Refused, Unreadable
from processor.scenarios import utterances
from replay.labels import Kinds, kinds, share
from schemas.contract import Contract
from schemas.operations import Operation
from schemas.utterance import Utterance, UtteranceKind

SCENARIOS = ("incident", "deliberation")


@final
class LabelledTurn(Contract):
    """One turn: its gold label, and the one that was read (None: it could not be read).

    A key shift is a turn in which a record's standing changes.
    """

    scenario: str
    utterance_id: str
    turn: int
    is_key_shift: bool
    gold: Kinds
    read: Kinds | None
    failed: str | None = None
    model: str | None = None
    prompt_id: str | None = None
    prompt_hash: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0


@final
class Score(NamedTuple):
    """How well the labels of some turns were read; F1 is taken over all labels together."""

    turns: int
    unreadable: int
    precision: float
    recall: float
    f1: float
    exact_match: float


@final
@dataclass(frozen=True)
class GoldInterpreter:
    """Reads what a scenario's own operations say: the interpreter that is always right."""

    async def interpret(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """The gold operations of the scenario's utterance."""
        for scripted in utterances(conversation.conversation_id):
            if scripted.utterance_id == utterance.utterance_id:
                return Reading(NATIVE, operations=scripted.operations or ())
        return Unreadable(NATIVE, f"no scenario has an utterance {utterance.utterance_id!r}")


async def label_scenario(interpreter: Interpreter, name: str) -> AsyncIterator[LabelledTurn]:
    """The turns of a scenario as the interpreter reads them. Raises EndpointUnavailable."""
    conversation = Conversation.empty("default", name)
    state = conversation.state
    for utterance in utterances(name):
        if utterance.kind is UtteranceKind.SETUP:
            run_setup(state, utterance.setup_body(), utterance.audience).commit()
        if utterance.kind is not UtteranceKind.STATEMENT or utterance.operations is None:
            continue
        in_words = utterance.model_copy(update={"operations": None})
        answer = await interpreter.interpret(conversation, in_words, None)
        gold = parse_formulas(utterance.operations)
        turn = conversation.turn + 1
        allowed = authority(state, CURRENT_RULES, utterance.role, None)
        transition, outcome = run_turn(
            state, turn, utterance.speaker, utterance.audience, gold, allowed
        )
        transition.commit()
        conversation.turn = turn
        yield _labelled(name, utterance, turn, bool(outcome.standings), gold, answer)


def _labelled(
    name: str,
    utterance: Utterance,
    turn: int,
    is_key_shift: bool,
    gold: Sequence[Operation],
    answer: Interpreted,
) -> LabelledTurn:
    read = answer if isinstance(answer, Reading) else None
    provenance = answer.provenance
    return LabelledTurn(
        scenario=name,
        utterance_id=utterance.utterance_id,
        turn=turn,
        is_key_shift=is_key_shift,
        gold=kinds(gold),
        read=None if read is None else kinds(read.operations),
        failed=answer.reason if isinstance(answer, Unreadable) else None,
        model=provenance.model,
        prompt_id=provenance.prompt_id,
        prompt_hash=provenance.prompt_hash,
        tokens_in=provenance.tokens_in,
        tokens_out=provenance.tokens_out,
    )


def score(turns: Sequence[LabelledTurn]) -> Score:
    """How well the labels of these turns were read. A share of nothing is 1."""
    right = sum(kind in turn.gold for turn in turns for kind in turn.read or ())
    given = sum(len(turn.read or ()) for turn in turns)
    wanted = sum(len(turn.gold) for turn in turns)
    return Score(
        turns=len(turns),
        unreadable=sum(turn.read is None for turn in turns),
        precision=share(right, given),
        recall=share(right, wanted),
        f1=share(2 * right, given + wanted),
        exact_match=share(sum(turn.read == turn.gold for turn in turns), len(turns)),
    )
