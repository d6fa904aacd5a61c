"""Fuzz one target for some seconds: `python -m tests.fuzz.run utterance 20`.

It needs atheris, which `make fuzz` has in an environment of its own. An input that breaks a target
is kept in `build/fuzz`; once what it found is mended, it belongs to `tests/fuzz/inputs/TARGET`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import atheris

with atheris.instrument_imports(include=["schemas", "processor"]):
    from tests.fuzz.targets import TARGETS, Target, seeds

from tests.project.sources import ROOT

KEPT = ROOT / "build" / "fuzz"
INPUT_BYTES_MAX = 16_384
_WRITTEN = [
    *("null", "true", "0", "-1", "9007199254740993", "18446744073709551616", "1e308", "[]", "{}"),
    *('""', '"o1"', '"\\u2028"', '"\\u0000"', '"' + "a" * 300 + '"', "[[]]"),
]
"""What is put in the place of a value, as JSON."""


def main() -> None:
    """Run libFuzzer; it ends the process, with a status that is not 0 if it found something."""
    name, seconds = sys.argv[1], int(sys.argv[2])
    corpus = KEPT / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (corpus / f"seed-{number:04}").write_bytes(seed[:INPUT_BYTES_MAX])
    changed = [json.loads(seed) for seed in seeds(name)] if name != "formula" else []
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-artifact_prefix={KEPT}/{name}-",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], _both(TARGETS[name], changed))
    atheris.Fuzz()


def _both(target: Target, documents: list[Any]) -> Target:
    """Every input as it is, and as a recipe for changing a valid document.

    Random bytes seldom get past a JSON reader, and then the fields are not tried.
    """

    def run(given: bytes) -> bool:
        taken = target(given)
        if documents:
            told = atheris.FuzzedDataProvider(given)
            document = json.loads(json.dumps(told.PickValueInList(documents)))
            for _ in range(told.ConsumeIntInRange(1, 4)):
                _change(told, document)
            taken |= target(json.dumps(document).encode())
        return taken

    return run


def _change(told: Any, document: Any) -> None:
    """Change one place in the document: drop it, put something else there, or copy it elsewhere."""
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = told.PickValueInList(keys)
        if isinstance(place[key], dict | list) and told.ConsumeBool():
            place = place[key]
            continue
        match told.ConsumeIntInRange(0, 4):
            case 0:
                del place[key]
            case 1:
                place[key] = json.loads(told.PickValueInList(_WRITTEN))
            case 2:
                place[key] = told.ConsumeUnicodeNoSurrogates(64)
            case 3:
                place[key] = [place[key]] * told.ConsumeIntInRange(0, 3)
            case _:
                place[key] = told.ConsumeInt(9)
        return


if __name__ == "__main__":
    main()
