"""Asks until the conversation's state takes what was read, and puts the tries together.

What the state refuses goes back to the interpreter with the reasons, a bounded number of times;
then what stands is kept, and the rest is noted with its reasons. A try that fails, or that leaves
everything out, does not undo one that went well in part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from processor.interpreter.port import Interpreted, Reading, Refused, Unreadable
from schemas.contract import OPERATIONS_MAX
from schemas.log import ANSWER_CHARS_MAX, CALLS_MAX, Interpretation, ModelCall, Rejection

REPROMPTS_MAX: Final = 2
ANSWERS_CHARS_MAX: Final = 4 * ANSWER_CHARS_MAX
"""Of all answers that one event keeps."""


async def read_until_it_stands(
    ask: Callable[[Refused | None], Awaitable[Interpreted]],
    refusals: Callable[[Reading], Sequence[Rejection]],
) -> Interpreted:
    """The last reading, with the costs of all tries; it may still be refused in part.

    `refusals` are what the state refuses of the operations of a reading, by their place in it.
    """
    refused: Refused | None = None
    costs: list[Interpretation] = []
    for _ in range(1 + REPROMPTS_MAX):
        interpreted = await ask(refused)
        costs.append(interpreted.provenance)
        if isinstance(interpreted, Unreadable) or (refused is not None and _is_empty(interpreted)):
            if refused is None:
                return interpreted
            break
        rejections = tuple(refusals(interpreted))
        is_same = refused is not None and refused.reading.operations == interpreted.operations
        refused = Refused(interpreted, rejections)
        if is_same or not (rejections or interpreted.provenance.rejections):
            break
    assert refused is not None, "there was one reading"
    reading = refused.reading
    return reading._replace(provenance=add_costs(costs, reading.provenance))


def _is_empty(reading: Reading) -> bool:
    """Whether there is no operation in it, not even an invalid one."""
    return not reading.operations and not reading.provenance.rejections


def what_stands(reading: Reading, refusals: Sequence[Rejection]) -> Reading:
    """The reading without the operations that the state refuses, which are noted."""
    if not refusals:
        return reading
    refused = {rejection.index for rejection in refusals}
    standing = [each for place, each in enumerate(reading.operations) if place not in refused]
    noted = {"rejections": _all_rejected(reading, refusals)}
    return reading._replace(
        operations=tuple(standing), provenance=reading.provenance.model_copy(update=noted)
    )


def _all_rejected(reading: Reading, refusals: Sequence[Rejection]) -> tuple[Rejection, ...]:
    """What is no operation and what the state refuses, by their place in what the model gave."""
    invalid = {rejection.index for rejection in reading.provenance.rejections}
    count = len(reading.operations) + len(invalid)
    places = [place for place in range(count) if place not in invalid]
    by_state = [each.model_copy(update={"index": places[each.index]}) for each in refusals]
    every = sorted([*reading.provenance.rejections, *by_state], key=lambda each: each.index)
    return tuple(every[:OPERATIONS_MAX])


def add_costs(costs: Sequence[Interpretation], last: Interpretation) -> Interpretation:
    """One interpretation with the costs and the calls of all."""
    if len(costs) == 1 and costs[0] == last:
        return last
    return last.model_copy(
        update={
            "attempts": sum(each.attempts for each in costs),
            "tokens_in": sum(each.tokens_in for each in costs),
            "tokens_out": sum(each.tokens_out for each in costs),
            "milliseconds": sum(each.milliseconds for each in costs),
            "calls": _kept([call for each in costs for call in each.calls]),
        }
    )


def _kept(calls: Sequence[ModelCall]) -> tuple[ModelCall, ...]:
    """As many calls as an event may have, the first answers whole as long as there is room."""
    room = ANSWERS_CHARS_MAX
    kept: list[ModelCall] = []
    for call in calls[:CALLS_MAX]:
        size = len(call.answer or "")
        room -= size
        fits = room >= 0 or not size
        kept.append(call if fits else call.model_copy(update={"answer": None}))
    return tuple(kept)
