"""Write the contracts for other languages: JSON Schema per event, AsyncAPI for topics, OpenAPI.

    python -m schemas.generate           writes schemas/json
    python -m schemas.generate --check   exits 1 and names the files that are out of date

The schemas say what the models say, as far as a schema can: not that a date exists, how deep a
formula or inline records nest, or that an agent is declared with one role. Events that are read are
described as the reader takes them (fields with a default may be missing), derived events as they
are written (every field is there).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from schemas.asyncapi import JsonObject, asyncapi_document, schema_file, schema_id
from schemas.contract import Contract
from schemas.derived import DerivedEvent
from schemas.log import LogEvent
from schemas.openapi import openapi_document
from schemas.plain import say_it_in_full
from schemas.topics import UTTERANCE_TYPE
from schemas.utterance import Utterance

Mode = Literal["validation", "serialization"]

FOLDER = Path(__file__).parent / "json"
ASYNCAPI_FILE = "asyncapi.json"
OPENAPI_FILE = "openapi.json"
HOW_TO_REFRESH = "run `make schemas` and commit what it writes"

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def event_models() -> dict[str, tuple[type[Contract], Mode]]:
    """Each event type's model, and whether its schema is the reader's or the writer's."""
    models: dict[str, tuple[type[Contract], Mode]] = {UTTERANCE_TYPE: (Utterance, "validation")}
    union, *_ = get_args(LogEvent)
    for model in get_args(union):
        (event_type,) = get_args(model.model_fields["type"].annotation)
        models[event_type] = (model, "validation")
    for model in get_args(DerivedEvent):
        models[model.TYPE] = (model, "serialization")
    return models


def event_schema(event_type: str) -> JsonObject:
    """The JSON Schema (2020-12) of one event type. Raises KeyError for an unknown type."""
    model, mode = event_models()[event_type]
    schema = model.model_json_schema(mode=mode)
    say_it_in_full(schema)
    schema.pop("title")
    return {"$schema": _DIALECT, "$id": schema_id(event_type), "title": event_type, **schema}


def generated_files() -> dict[str, bytes]:
    """Every generated file's name and content, sorted by name."""
    documents = {schema_file(event_type): event_schema(event_type) for event_type in event_models()}
    documents[ASYNCAPI_FILE] = asyncapi_document()
    documents[OPENAPI_FILE] = openapi_document()
    return {name: _as_file(document) for name, document in sorted(documents.items())}


def stale_files(folder: Path) -> list[str]:
    """Names that are missing from the folder, differ from what is generated, or are left over."""
    wanted = generated_files()
    there = {path.name: path.read_bytes() for path in folder.glob("*.json")}
    return sorted(name for name in wanted | there if wanted.get(name) != there.get(name))


def write_files(folder: Path) -> list[str]:
    """Bring the folder up to date and return the names that changed."""
    wanted = generated_files()
    changed = stale_files(folder)
    folder.mkdir(exist_ok=True)
    for name in changed:
        if name in wanted:
            (folder / name).write_bytes(wanted[name])
        else:
            (folder / name).unlink()
    return changed


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the files; the exit status is 1 if a check finds one out of date."""
    parser = argparse.ArgumentParser(prog="python -m schemas.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, name stale files")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="default: schemas/json")
    options = parser.parse_args(arguments)
    if not options.check:
        for name in write_files(options.folder):
            print(f"wrote {name}")
        return 0
    stale = stale_files(options.folder)
    for name in stale:
        print(f"{options.folder.name}/{name} is out of date", file=sys.stderr)
    if stale:
        print(HOW_TO_REFRESH, file=sys.stderr)
    return 1 if stale else 0


def _as_file(document: JsonObject) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


if __name__ == "__main__":
    sys.exit(main())
