"""Claims of a draft that come as words alone: each is read by itself, as a draft of its own.

What the interpreter makes of one takes its place: no claim, one, or several. One that it cannot
read stays as it was, and is then checked as resting on no record.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from processor.app.interpret import is_unassociated
from processor.interpreter.loop import add_costs
from processor.interpreter.port import Interpreted, Reading
from schemas.contract import REFERENCES_MAX
from schemas.log import Interpretation
from schemas.utterance import CandidateClaim, Utterance


async def read_claims(
    utterance: Utterance, read: Callable[[Utterance], Awaitable[Interpreted]]
) -> Reading:
    """All claims of a draft that has some, those that were words alone associated by `read`."""
    assert utterance.claims is not None
    claims: list[CandidateClaim] = []
    costs: list[Interpretation] = []
    for claim in utterance.claims:
        if not is_unassociated(claim):
            claims.append(claim)
            continue
        alone = utterance.model_copy(update={"text": claim.text, "claims": None})
        answer = await read(alone)
        costs.append(answer.provenance)
        understood = answer.claims if isinstance(answer, Reading) else None
        claims += (claim,) if understood is None else understood
    assert costs, "a draft is read only if it needs to be"
    return Reading(add_costs(costs, costs[-1]), claims=tuple(claims[:REFERENCES_MAX]))
