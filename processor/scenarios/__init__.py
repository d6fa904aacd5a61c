"""Conversations whose outcome is known, with their gold operations.

`NAME.jsonl` holds the utterances, one a line, `NAME.expected.json` what must be true after them:

- `muddy-children`: what is left of eight worlds when three children answer together, round by
  round; `muddy-children-sequential`: they answer one after the other, and it comes out differently.
- `incident`: three engineers look for a cause in 13 turns and give one up on the way;
  `incident-with-candidates`: the same with drafts to check in between, and a retraction at the end.
- `deliberation`: three people decide in 19 turns, against a dissent, until an assumption turns out
  false.
- `values`: a probe's value is superseded, and what rests on it falls; a user's word against the new
  one makes a dispute of it.

`text-only.jsonl` has no operations, and so no known outcome: it is for trying a model.
"""

from __future__ import annotations

from importlib.resources import files

from processor.scenarios.expected import Expected
from schemas.utterance import Utterance
from schemas.wire import decode_utterance

NAMES = (
    "muddy-children",
    "muddy-children-sequential",
    "incident",
    "incident-with-candidates",
    "deliberation",
    "values",
)


def scenario_bytes(name: str) -> bytes:
    """The scenario's JSON Lines as stored. Raises FileNotFoundError for an unknown name."""
    return files(__name__).joinpath(f"{name}.jsonl").read_bytes()


def utterances(name: str) -> tuple[Utterance, ...]:
    """The scenario's utterances in order."""
    return tuple(decode_utterance(line) for line in scenario_bytes(name).splitlines())


def expected(name: str) -> Expected:
    """What must be true of the scenario."""
    stored = files(__name__).joinpath(f"{name}.expected.json").read_bytes()
    return Expected.model_validate_json(stored)
