"""The command line as its users see it: what it prints, where, and with which exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from processor.cli.main import COMMANDS
from processor.scenarios import scenario_bytes

Json = dict[str, Any]
CONVERSATION = "incident-with-candidates"
TYPES = {
    "standfast.turn.v1",
    "standfast.verdict.v1",
    "standfast.retraction_impact.v1",
    "standfast.ungrounded_alert.v1",
    "standfast.context_update.v1",
}


def standfast(*arguments: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "processor.cli.main", *map(str, arguments)],
        input=given,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the incident, with its drafts and the retraction at its end."""
    folder = tmp_path_factory.mktemp("incident")
    ran = standfast("run", "-", "--out", folder, given=scenario_bytes("incident-with-candidates"))
    assert ran.returncode == 0, ran.stderr
    return folder / "standfast.duckdb"


def ask(incident: Path, *arguments: str) -> Any:
    """The JSON answer of a query."""
    ran = standfast(*arguments, "--db", incident, "--conversation", CONVERSATION, "--json")
    assert ran.returncode == 0, ran.stderr
    return orjson.loads(ran.stdout)


def test_run_prints_one_event_per_line_with_type_and_data() -> None:
    """Every line of --json is one derived event with the fields that every event carries."""
    ran = standfast("run", "-", "--json", given=scenario_bytes("incident"))
    assert ran.returncode == 0
    assert ran.stderr == b""
    events = [orjson.loads(line) for line in ran.stdout.splitlines()]
    assert {event["type"] for event in events} <= TYPES
    for event in events:
        assert set(event) == {"type", "data"}
        for field in ("tenant_id", "conversation_id", "turn", "sequence", "event_id"):
            assert field in event["data"]
    assert len({event["data"]["event_id"] for event in events}) == len(events)
    turns = [event["data"]["turn"] for event in events if event["type"] == "standfast.turn.v1"]
    assert turns == list(range(1, 14))


def test_a_bad_line_is_named_on_stderr_and_kept_and_the_status_is_2(tmp_path: Path) -> None:
    """One line on stderr names file, line and field; the rest of the input is processed."""
    good = scenario_bytes("incident").splitlines()
    naive = good[2].replace(b'Z"', b'"')
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"\n".join([*good[:2], naive, b"\xff{", *good[3:]]))
    ran = standfast("run", source, "--out", tmp_path / "out", "--json")
    assert ran.returncode == 2
    (line,) = ran.stderr.decode().splitlines()
    assert f"{source}:3: at: " in line
    letters = [
        orjson.loads(each)
        for each in (tmp_path / "out" / "dead-letters.jsonl").read_bytes().splitlines()
    ]
    assert [letter["line"] for letter in letters] == [3, 4]
    assert letters[0]["original"] == naive.decode()
    assert letters[1]["original_base64"]
    turns = [line for line in ran.stdout.splitlines() if b"standfast.turn.v1" in line]
    assert len(turns) == 12


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "no-such-file.jsonl"),
        ("run", "-", "--interpreter", "oracle"),
        ("run", "-", "--rules", "99"),
        ("state", "--db", "no-such.duckdb", "--conversation", "c"),
        ("verify", "--db", "no-such.duckdb", "--conversation", "c"),
        ("topics", "create", "--bootstrap", "127.0.0.1:1", "--tenant", "a/b"),
        ("topics", "check", "--bootstrap", "127.0.0.1:1", "--partitions", "0"),
        ("topics", "drop"),
        ("tail", "verdicts", "--bootstrap", "127.0.0.1:1", "--conversation", "a b"),
        ("no-such-command",),
    ],
)
def test_bad_usage_is_one_line_on_stderr_and_status_2(arguments: tuple[str, ...]) -> None:
    """Wrong arguments give one clear line and never a traceback."""
    ran = standfast(*arguments)
    assert ran.returncode == 2
    assert len(ran.stderr.decode().splitlines()) == 1
    assert b"Traceback" not in ran.stderr


def test_a_file_that_is_no_store_is_said_to_be_none(tmp_path: Path) -> None:
    """Whatever its name says it is."""
    for name in ("lines.jsonl", "table.parquet", "store.duckdb"):
        path = tmp_path / name
        path.write_bytes(b'{"conversation_id": "c"}\n')
        asked = standfast("state", "--db", path, "--conversation", "c")
        assert asked.returncode == 2
        assert asked.stderr.decode() == f"standfast: {path}: not a standfast store\n"


def test_no_command_is_bad_usage() -> None:
    """The help, and one line on standard error."""
    asked = standfast()
    assert (asked.returncode, asked.stderr) == (2, b"standfast: no command was given\n")
    assert b"verify" in asked.stdout


def test_help_shows_every_command() -> None:
    """`standfast --help` lists the commands that work."""
    shown = standfast("--help").stdout.decode()
    for command in COMMANDS:
        assert f"  {command} " in shown


def test_verify_prints_the_exact_closure(incident: Path) -> None:
    """On acceptance the support is the closure; after the retraction the failure is named."""
    before = ask(incident, "verify", "h3", "--turn", "12")
    assert before["outcome"] == "grounded"
    assert before["support"] == ["h3", "o5", "o6", "o9"]
    after = ask(incident, "verify", "h3")
    assert after["outcome"] == "ungrounded"
    assert [failure["record"] for failure in after["failures"]] == ["o5"]
    assert after["failures"][0]["path"] == ["h3", "o5"]


def test_an_answer_has_an_id_of_its_own(incident: Path) -> None:
    """Asking twice gives the same id; another record, another turn or the log gives another."""
    emitted = standfast("run", "-", "--json", given=scenario_bytes(CONVERSATION)).stdout
    questions = [(record, turn) for record in ("h3", "h4", "o5") for turn in ("13", "14")]
    answers = [ask(incident, "verify", record, "--turn", turn) for record, turn in questions]
    ids = [answer["event_id"] for answer in answers]
    ids += [orjson.loads(line)["data"]["event_id"] for line in emitted.splitlines()]
    assert len(set(ids)) == len(ids)
    assert ask(incident, "verify", "h3", "--turn", "13") == answers[0]


def test_affected_prints_the_three_lists(incident: Path) -> None:
    """One step, closure, and the part of it in good standing."""
    report = ask(incident, "affected", "o5", "--turn", "13")
    assert report["direct"] == ["h3"]
    assert report["transitive"] == ["h1", "h3", "h4"]
    assert report["in_good_standing"] == ["h1", "h3", "h4"]


def test_history_tells_the_life_of_a_hypothesis(incident: Path) -> None:
    """The history of h2 is its proposal, its weakening at turn 7, its end at turn 9."""
    entries = ask(incident, "history", "h2")["history"]
    standings = [
        (entry["turn"], entry["value"]) for entry in entries if entry["happening"] == "standing"
    ]
    assert standings == [(6, "active"), (7, "weakened"), (9, "abandoned")]


def test_holds_asks_the_model_at_a_turn(incident: Path) -> None:
    """Belief without knowledge after turn 7, knowledge after turn 9."""
    assert ask(incident, "holds", "B_alice ~h2 & ~K_alice ~h2", "--turn", "7")["holds"] is True
    assert ask(incident, "holds", "K_alice ~h2", "--turn", "9")["holds"] is True
    assert ask(incident, "holds", "K_alice ~h2", "--turn", "7")["holds"] is False


def test_context_leaves_out_what_was_given_up_unless_asked(incident: Path) -> None:
    """A model that reads the context is not shown h2 as current."""
    claim = "\n- h2 "
    assert claim not in ask(incident, "context", "--turn", "13")["text"]
    assert claim in ask(incident, "context", "--turn", "13", "--withdrawn")["text"]


def test_every_query_also_speaks_to_people(incident: Path) -> None:
    """Without --json each query prints lines and exits with 0."""
    where = ("--db", incident, "--conversation", CONVERSATION)
    for arguments in (
        ("state",),
        ("verify", "h4"),
        ("affected", "o5", "o6"),
        ("why", "h4"),
        ("history", "h2"),
        ("context",),
        ("holds", "h4"),
    ):
        ran = standfast(*arguments, *where)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.strip()


def test_another_tenants_conversation_answers_like_one_that_does_not_exist(incident: Path) -> None:
    """The two answers differ in nothing but the names that were asked for."""
    other = standfast(
        "state", "--db", incident, "--conversation", CONVERSATION, "--tenant", "someone-else"
    )
    unknown = standfast(
        "state", "--db", incident, "--conversation", "nothing", "--tenant", "someone-else"
    )
    assert other.returncode == unknown.returncode == 2
    assert other.stderr.replace(CONVERSATION.encode(), b"nothing") == unknown.stderr


def test_an_unknown_record_and_a_bad_formula_are_named(incident: Path) -> None:
    """The line on stderr says which record, or where in the formula."""
    where = ("--db", incident, "--conversation", CONVERSATION)
    unknown = standfast("verify", "zz", *where)
    assert unknown.returncode == 2
    assert b"'zz'" in unknown.stderr
    broken = standfast("holds", "p & & q", *where)
    assert broken.returncode == 2
    assert b"4" in broken.stderr


def test_the_turn_past_the_end_is_bad_input(incident: Path) -> None:
    """A turn that the log does not reach is not answered with another turn's state."""
    ran = standfast("state", "--db", incident, "--conversation", CONVERSATION, "--turn", "99")
    assert ran.returncode == 2
    assert b"99" in ran.stderr


def test_fail_ungrounded_turns_a_negative_answer_into_status_1() -> None:
    """The incident's drafts hold an ungrounded claim, so the run answers no."""
    given = scenario_bytes("incident-with-candidates")
    assert standfast("run", "-", "--fail-ungrounded", given=given).returncode == 1
    assert standfast("run", "-", given=given).returncode == 0


def test_a_rerun_answers_as_the_first_run_did(tmp_path: Path) -> None:
    """Drafts that the log has already count with the verdicts that they got."""
    given = scenario_bytes("incident-with-candidates")
    arguments = ("run", "-", "--fail-ungrounded", "--out", tmp_path)
    assert [standfast(*arguments, given=given).returncode for _ in range(2)] == [1, 1]
    others = scenario_bytes("incident")
    assert standfast(*arguments, given=others).returncode == 0


def test_verify_can_turn_a_negative_answer_into_status_1(incident: Path) -> None:
    """Asked to, a check of an ungrounded record exits with 1, one of a grounded record with 0."""
    where = ("--db", incident, "--conversation", CONVERSATION, "--fail-ungrounded")
    assert standfast("verify", "h4", *where).returncode == 1
    assert standfast("verify", "h4", *where, "--turn", "13").returncode == 0


def test_hostile_text_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """Escape sequences and markup in an utterance are shown as data."""
    utterance = {
        "conversation_id": "c",
        "utterance_id": "u",
        "speaker": "ann",
        "at": "2026-03-01T02:31:00Z",
        "text": "\x1b[2J[bold]gone[/bold]\r\x07",
        "operations": [{"op": "observe", "record": "o1", "claim": "\x1b]0;owned\x07[red]x[/red]"}],
    }
    ran = standfast("run", "-", "--out", tmp_path, given=orjson.dumps(utterance))
    shown = ran.stdout.decode()
    assert ran.returncode == 0
    assert "\x1b" not in shown
    assert "[bold]gone[/bold]" in shown
    for command in (("state",), ("why", "o1"), ("context",), ("history", "o1")):
        queried = standfast(*command, "--db", tmp_path / "standfast.duckdb", "--conversation", "c")
        assert queried.returncode == 0
        assert b"\x1b" not in queried.stdout


def test_a_store_that_is_no_store_is_refused(tmp_path: Path) -> None:
    """A file of another kind, and one that another process writes, give one line and status 2."""
    other = tmp_path / "other.duckdb"
    other.write_bytes(b"not a database" * 100)
    ran = standfast("state", "--db", other, "--conversation", "c")
    assert ran.returncode == 2
    assert len(ran.stderr.decode().splitlines()) == 1


def test_a_reader_that_goes_away_is_not_an_error() -> None:
    """`standfast run ... | head -1` ends quietly."""
    command = f"{sys.executable} -m processor.cli.main run - --json | head -1"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        input=scenario_bytes("incident"),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0
    assert ran.stderr == b""


def test_a_run_does_not_read_the_dead_letters_it_writes(tmp_path: Path) -> None:
    """The file would grow as fast as it is read; it is refused in one line."""
    assert standfast("run", "-", "--out", tmp_path, given=b"garbage\n").returncode == 2
    ran = standfast("run", tmp_path / "dead-letters.jsonl", "--out", tmp_path)
    assert ran.returncode == 2
    assert len((tmp_path / "dead-letters.jsonl").read_bytes().splitlines()) == 1
    assert len(ran.stderr.splitlines()) == 1
