"""Cases that users of such systems complain about elsewhere, through the one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.test_commands import standfast
from tests.engine.given import hypothesize, inline, observe, resolve, revise, support

Json = dict[str, Any]


def told(folder: Path, *utterances: Json, options: tuple[str, ...] = ()) -> list[Json]:
    """What a run on these utterances emits, in order."""
    lines = [
        orjson.dumps(
            {
                "conversation_id": "c",
                "utterance_id": f"u{number}",
                "speaker": "ann",
                "at": "2026-03-01T02:31:00Z",
                **said,
            }
        )
        for number, said in enumerate(utterances, 1)
    ]
    ran = standfast("run", "-", "--out", folder, "--json", *options, given=b"\n".join(lines))
    assert ran.returncode == 0, ran.stderr
    return [orjson.loads(line) for line in ran.stdout.splitlines()]


def says(*operations: Json, **fields: object) -> Json:
    """A statement."""
    return {"operations": list(operations), **fields}


def drafts(*records: str, **fields: object) -> Json:
    """A draft with one claim on these records."""
    return {"kind": "candidate", "claims": [{"text": "so", "records": list(records)}], **fields}


def of_type(events: list[Json], name: str) -> list[Json]:
    """The content of the events of one type."""
    return [event["data"] for event in events if event["type"] == f"standfast.{name}.v1"]


def shown(folder: Path, *arguments: str) -> str:
    """What a query prints."""
    where = ("--db", folder / "standfast.duckdb", "--conversation", "c")
    ran = standfast(*arguments, *where)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.decode()


@pytest.mark.parametrize("view", ["full", "active"])
def test_superseded_text_is_absent_unless_asked_for(tmp_path: Path, view: str) -> None:
    """A context that an answering model is given holds the new limit and not the old one."""
    told(
        tmp_path,
        says(observe("old", claim="The limit is 30 s.")),
        says(revise("old", inline("new", claim="The limit is 10 s."))),
    )
    for budget in ((), ("--budget", "200")):
        text = shown(tmp_path, "context", "--view", view, *budget)
        assert "10 s" in text
        assert "30 s" not in text
        assert "30 s" in shown(tmp_path, "context", "--view", view, "--withdrawn", *budget)


def test_a_restatement_falls_with_what_it_restates(tmp_path: Path) -> None:
    """The assistant's echo is no second leg: with the user's premise gone, nothing holds up h."""
    events = told(
        tmp_path,
        says(observe("said", claim="The pool has 50 connections.")),
        says(
            support("said", inline("echo", "said", claim="So, 50 connections.")),
            speaker="bot",
            role="assistant",
        ),
        says(hypothesize("h", "said", "echo")),
        says(revise("said", inline("n"))),
        drafts("echo"),
        drafts("h"),
    )
    outcomes = [(each["outcome"], each["grade"]) for each in of_type(events, "verdict")]
    assert outcomes == [("ungrounded", "ungrounded")] * 2


def test_a_conclusion_with_another_leg_is_not_killed_loudly(tmp_path: Path) -> None:
    """Its grade is corroboration_lost, its alert a warning, and the sentence says what it keeps."""
    events = told(
        tmp_path,
        says(observe("o1"), observe("o2"), hypothesize("h", "o1"), support("h", "o2")),
        says(resolve("h")),
        says(revise("o2", inline("n"))),
        drafts("h"),
    )
    loud, draft = of_type(events, "ungrounded_alert")
    assert [loud["severity"], draft["severity"]] == ["warning", "warning"]
    assert [each["grade"] for each in of_type(events, "verdict")] == ["corroboration_lost"] * 2
    assert shown(tmp_path, "verify", "h", "--explain").splitlines()[1] == (
        "decision h keeps its ground but lost corroboration: o2 was withdrawn at turn 3;"
        " it rests on o1, o2"
    )


def test_an_alert_is_raised_once(tmp_path: Path) -> None:
    """One decision that loses its ground, then five clean turns: exactly one alert."""
    events = told(
        tmp_path,
        says(observe("a"), resolve("a", decision=inline("d"))),
        says(observe("p")),
        says(revise("a", inline("n"))),
        *(says(observe(f"clean{number}")) for number in range(5)),
    )
    assert [each["record"] for each in of_type(events, "ungrounded_alert")] == ["d"]


def test_a_premise_withdrawn_long_ago_is_seen(tmp_path: Path) -> None:
    """Planted at turn 2, withdrawn at 4, relied on at 9: ungrounded at 9, and the turn is told."""
    events = told(
        tmp_path,
        says(observe("a")),
        says(observe("premise")),
        says(hypothesize("conclusion", "premise")),
        says(revise("premise", inline("n"))),
        *(says(observe(f"talk{number}")) for number in range(5)),
        drafts("conclusion", role="assistant"),
    )
    (verdict,) = of_type(events, "verdict")
    assert (verdict["turn"], verdict["outcome"]) == (9, "ungrounded")
    assert [(f["record"], f["since_turn"]) for f in verdict["failures"]] == [("premise", 4)]
    explained = shown(tmp_path, "verify", "conclusion", "--explain").splitlines()[1]
    assert explained == (
        "hypothesis conclusion is no longer grounded: premise was withdrawn at turn 4;"
        " it rests on premise"
    )


def test_what_a_tool_observed_is_not_withdrawn_by_a_user(tmp_path: Path) -> None:
    """The default policy refuses it in the turn event; a tenant's own policy may allow it."""
    said = [
        says(observe("o"), speaker="gauge", role="tool"),
        says(revise("o", inline("n"))),
        drafts("o"),
    ]
    events = told(tmp_path / "default", *said)
    (rejection,) = of_type(events, "turn")[1]["rejections"]
    assert (rejection["code"], rejection["records"]) == ("not_authorised", ["o"])
    assert of_type(events, "verdict")[0]["outcome"] == "grounded"
    tenants = tmp_path / "tenants.jsonl"
    tenants.write_bytes(orjson.dumps({"tenant": "default", "policy": {"version": "open"}}))
    events = told(tmp_path / "open", *said, options=("--tenants", str(tenants)))
    assert of_type(events, "verdict")[0]["outcome"] == "ungrounded"
    assert orjson.loads(shown(tmp_path / "open", "state", "--json"))["policy"] == "open"


def test_a_policy_that_cannot_be_read_is_named_in_one_line(tmp_path: Path) -> None:
    """File, line and field, and status 2."""
    tenants = tmp_path / "tenants.jsonl"
    tenants.write_text('{"tenant": "default", "policy": {}}')
    ran = standfast("run", "-", "--tenants", tenants)
    assert ran.returncode == 2
    assert ran.stderr.decode().splitlines() == [
        f"standfast: {tenants}:1: policy.version: Field required"
    ]
