"""What of the chart is made from something else: `python -m tests.deploy.chart_files` writes it.

Its README comes from the comments of its values, its alert rules from `deploy/prometheus`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import yaml

from tests.deploy.software import CHART, DEPLOY

_HEAD = """# The chart `standfast`

Workers, an archive and the topics of standfast, on a Kafka that is there already.

```text
helm install standfast helm/standfast --namespace chat --set kafka.bootstrap=kafka:9092
```

Only `kafka.bootstrap` must be given. Secrets are named here, never written: they are made before.
How to run it, with a runbook for each alert, is in `deploy/README.md`. This page is made from
`values.yaml` by `make chart`.

| value | default | what it does |
|---|---|---|
"""
_KEY = re.compile(r"^( *)([\w-]+):")
_SAID = re.compile(r"^ *# -- (.*)$")


def explained(text: str) -> Iterator[tuple[str, str]]:
    """Each value with a comment that starts with `--`, by its path, and that comment."""
    path: list[str] = []
    said = ""
    for line in text.splitlines():
        if comment := _SAID.match(line):
            said = comment[1]
        elif key := _KEY.match(line):
            path[len(key[1]) // 2 :] = [key[2]]
            if said:
                yield ".".join(path), said
            said = ""


def default_of(values: Any, path: str) -> Any:
    """The value at a path."""
    for name in path.split("."):
        values = values[name]
    return values


def readme() -> str:
    """The chart's README."""
    text = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(text)
    rows = (
        f"| `{path}` | `{orjson.dumps(default_of(values, path)).decode()}` | {said} |\n"
        for path, said in explained(text)
    )
    return _HEAD + "".join(rows)


def made() -> dict[Path, str]:
    """Every made file of the chart, with its content."""
    rules = (DEPLOY / "prometheus" / "rules.yaml").read_text()
    return {CHART / "README.md": readme(), CHART / "files" / "rules.yaml": rules}


def main() -> int:
    """Write them."""
    for path, content in made().items():
        path.write_text(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
