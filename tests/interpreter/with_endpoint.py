"""The command in a process of its own, with a scripted endpoint in its environment."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.interpreter.scripted_endpoint import KEY, MODEL, ScriptedEndpoint


def environment_at(endpoint: ScriptedEndpoint | None) -> dict[str, str]:
    """The environment of a user who has set the endpoint's variables and no others."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI", "STANDFAST"))}
    if endpoint is not None:
        environment |= {
            "OPENAI_BASE_URL": endpoint.url,
            "OPENAI_API_KEY": KEY,
            "STANDFAST_INTERPRETER_MODEL": MODEL,
        }
    return environment


def standfast_at(
    endpoint: ScriptedEndpoint | None, *arguments: object, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run the command in that environment."""
    return subprocess.run(
        [sys.executable, "-m", "processor.cli.main", *map(str, arguments)],
        input=given,
        env=environment_at(endpoint),
        capture_output=True,
        check=False,
        timeout=120,
    )
