"""The data of a page: every turn is what the engine says of it; hostile text is data."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import orjson
import pytest

from replay.report.page import content_hash, report_page
from tests.replay.told import Told, tell, told_at_random

Json = dict[str, Any]


def _version(record: Json, turn: int) -> list[Any]:
    (found,) = [
        version
        for version in record["versions"]
        if version[0] <= turn and (version[1] is None or turn < version[1])
    ]
    return found


def _as_of(data: Json, turn: int) -> Json:
    """What the data say of a turn, in the words of the oracle."""
    records = [record for record in data["records"] if record["turn"] <= turn]
    ids = [record["id"] for record in data["records"]]
    said: Json = {}
    for record in records:
        _, _, standing, grade, disputed = _version(record, turn)
        links = [[ids[place], kind] for place, kind, since in record["links"] if since <= turn]
        said[record["id"]] = {
            "standing": standing,
            "grade": grade,
            "disputed": disputed,
            "links": links,
        }
    good = {id_ for id_, each in said.items() if each["standing"] in ("active", "resolved")}
    still_open = [
        problem["id"]
        for problem in data["problems"]
        if problem["turn"] <= turn
        and not any(id_ in good for id_, since in problem["answers"] if since <= turn)
    ]
    return {"records": said, "open": still_open}


def _compared(turn: Json) -> Json:
    kept = ("standing", "grade", "disputed", "links")
    records = {id_: {name: each[name] for name in kept} for id_, each in turn["records"].items()}
    return {"records": records, "open": turn["open"]}


def _agrees(told: Told) -> int:
    data = orjson.loads(told.data)
    for turn, said in told.turns.items():
        assert _as_of(data, turn) == _compared(said), turn
    return len(told.turns)


def test_every_turn_is_what_the_engine_said_of_it() -> None:
    """Standing, grade, dispute, links and open problems are those of the live state."""
    assert sum(_agrees(told_at_random(seed)) for seed in range(40)) > 700


@pytest.mark.thorough
def test_every_turn_of_many_long_conversations() -> None:
    """The same holds in 600 conversations of a hundred utterances."""
    assert sum(_agrees(told_at_random(seed, 100)) for seed in range(1_000, 1_600)) > 30_000


def test_versions_of_a_record_follow_one_another() -> None:
    """One version begins where the one before ends, says something else, and the last is open."""
    for seed in range(20):
        for record in orjson.loads(told_at_random(seed).data)["records"]:
            versions = record["versions"]
            assert versions[0][0] == record["turn"]
            assert versions[-1][1] is None
            for before, after in itertools.pairwise(versions):
                assert before[1] == after[0] > before[0]
                assert before[2:] != after[2:]


_PRINT = """
import hashlib
from tests.replay.told import told_at_random
for seed in range(8):
    print(hashlib.sha256(told_at_random(seed).data).hexdigest())
"""


def test_the_bytes_are_the_same_under_every_hash_seed() -> None:
    """Two processes with other hash seeds make the same bytes of the same conversations."""
    printed = [
        subprocess.run(
            [sys.executable, "-c", _PRINT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "77")
    ]
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == 8


HOSTILE = (
    "</script><script>alert(1)</script><!--<script><img src=x onerror=alert(2)>&lt;\u2028\u2029"
)


def hostile() -> Told:
    """A conversation in which everybody tries to be markup."""
    said = {
        "conversation_id": "c",
        "utterance_id": "u1",
        "speaker": "mallory",
        "at": "2026-03-01T02:31:00Z",
        "text": HOSTILE,
    }
    operations = [
        {"op": "observe", "record": "o1", "claim": HOSTILE},
        {"op": "observe", "record": "o2", "claim": "{{DATA}}{{SCRIPT}}", "premises": ["o1"]},
        {"op": "question", "question": "q1", "text": HOSTILE},
        {"op": "revise", "target": "gone", "by": {"record": "o3", "claim": HOSTILE}},
    ]
    draft = {"kind": "candidate", "claims": [{"text": HOSTILE, "record": "o1"}]}
    lines = [{**said, "operations": operations}, {**said, "utterance_id": "u2", **draft}]
    return tell(lines)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, str] = {}
        self._in = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in = tag if tag in ("script", "style") else ""
        if tag == "script":
            self._in = "data" if dict(attrs).get("type") else "script"

    def handle_data(self, data: str) -> None:
        if self._in:
            self.inside[self._in] = self.inside.get(self._in, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._in = ""


def _read(page: bytes) -> _Tags:
    parser = _Tags()
    parser.feed(page.decode())
    return parser


def test_hostile_claims_are_data() -> None:
    """No claim adds an element or ends the block of data, and all of them come out as they were."""
    plain = _read(report_page(tell([]).data, "c").html)
    told = hostile()
    read = _read(report_page(told.data, HOSTILE).html)
    assert [tag for tag, _ in read.tags] == [tag for tag, _ in plain.tags]
    data = orjson.loads(read.inside["data"])
    assert data == orjson.loads(told.data)
    assert data["records"][0]["claim"] == HOSTILE


def test_the_policy_names_this_script_and_these_styles_and_nothing_else() -> None:
    """The page's policy holds the hashes of its one script and one style; nothing may be loaded."""
    read = _read(report_page(tell([]).data, "c").html)
    (policy,) = [
        attrs["content"]
        for tag, attrs in read.tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules == {
        "default-src": "'none'",
        "script-src": content_hash(read.inside["script"]),
        "style-src": content_hash(read.inside["style"]),
        "connect-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_the_page_names_no_address() -> None:
    """Nothing in the page points anywhere: no link, no source, no inline style or handler."""
    page = report_page(hostile().data, "c").html
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", page.decode()))
    assert addresses == {"http://www.w3.org/2000/svg"}
    for tag, attrs in _read(page).tags:
        assert not {"src", "style", "srcset", "action"} & set(attrs), tag
        assert not [name for name in attrs if name.startswith("on")], tag
        assert attrs.get("href", "#").startswith("#"), tag
