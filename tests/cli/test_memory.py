"""`standfast memory` as its users see it: answers, words, advice, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from processor.evidence.tiers import NAMES
from tests.cli.test_commands import standfast

Json = dict[str, Any]


def told(number: int, value: str, speaker: str = "ann", **atom: object) -> Json:
    """One line of input that gives the pool's timeout a value."""
    about = {"entity": "pool", "attribute": "timeout", "value": value, **atom}
    observe = {"op": "observe", "record": f"o{number}", "claim": f"it is {value}"}
    return {
        "conversation_id": "c",
        "utterance_id": f"u{number}",
        "speaker": speaker,
        "at": "2026-03-01T02:31:00Z",
        "operations": [{**observe, "atoms": [about]}],
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A value that was changed and changed back, and a facet in dispute."""
    folder = tmp_path_factory.mktemp("memory")
    lines = [
        told(1, "30 s", valid_from="2024"),
        told(2, "60 s", valid_from="2025"),
        told(3, "30 s", valid_from="2026"),
        told(4, "5 s", facet="staging"),
        told(5, "9 s", "bob", facet="staging"),
    ]
    given = b"\n".join(map(orjson.dumps, lines))
    ran = standfast("run", "-", "--out", folder, given=given)
    assert ran.returncode == 0, ran.stderr
    return folder / "standfast.duckdb"


def memory(store: Path, command: str, *arguments: str) -> tuple[int, str, str]:
    """Status, output and complaint of one memory command."""
    ran = standfast("memory", command, *arguments, "--db", store, "--conversation", "c")
    return ran.returncode, ran.stdout.decode(), ran.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ((), "30 s (o3), from 2026\n"),
        (("--query", "provenance"), "60 s (o2), from 2025 to 2026\n"),
        (("--query", "change_type"), "replaced (o2)\n"),
        (("--query", "status"), "ok\n"),
        (("--at", "2025-06"), "60 s (o2), from 2025 to 2026\n"),
        (("--turn", "2"), "60 s (o2), from 2025\n"),
        (("--memory", "latest_only"), "30 s (o3), from 2026\n"),
    ],
)
def test_ask_answers_each_class_of_query(
    store: Path, arguments: tuple[str, ...], answer: str
) -> None:
    """The value in force, the one before it, how it changed, and what it was earlier."""
    assert memory(store, "ask", "POOL", "timeout", *arguments) == (0, answer, "")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("--facet", "staging"), "abstains: 5 s (o4) against 9 s (o5)\n"),
        (("--facet", "other"), "nothing\n"),
        (
            ("--query", "provenance", "--memory", "coarse_discard"),
            "coarse_discard does not keep what provenance needs\n",
        ),
    ],
)
def test_ask_has_status_1_without_an_answer(
    store: Path, arguments: tuple[str, ...], answer: str
) -> None:
    """Abstaining, knowing nothing and not having kept it are negative answers."""
    assert memory(store, "ask", "pool", "timeout", *arguments) == (1, answer, "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("ask", "pool", "timeout", "--at", "soon"), "--at: 'soon' is no year"),
        (("ask", "a", "b", "--at", "2025", "--query", "status"), "--at: goes with"),
        (("advise",), "no query class has a weight above zero"),
        (("advise", "--mix", "snapshot"), "--mix: 'snapshot' is not CLASS=WEIGHT"),
        (("advise", "--mix", "snapshot=-1"), "a weight below zero"),
        (("advise", "--mix", "snapshot=1e400"), "a weight is at most 1e+12"),
        (("advise", "--mix", "snapshot=nan"), "a weight is at most 1e+12"),
    ],
)
def test_what_is_wrong_is_one_line_and_status_2(
    store: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    """Bad usage names the option and says what was expected."""
    status, out, error = memory(store, *arguments)
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert complaint in error


def test_the_memory_of_the_tenant_answers_unless_a_class_is_named(
    store: Path, tmp_path: Path
) -> None:
    """`auto` for snapshots alone keeps no history; a class that is named answers all the same."""
    tenants = tmp_path / "tenants.jsonl"
    tenants.write_bytes(
        orjson.dumps({"tenant": "default", "memory": "auto", "queries": {"snapshot": 1}})
    )
    ask = ("ask", "pool", "timeout", "--query", "provenance", "--tenants", str(tenants))
    kept_none = (1, "coarse_discard does not keep what provenance needs\n", "")
    assert memory(store, *ask) == kept_none
    assert memory(store, *ask, "--memory", "ledger") == (0, "60 s (o2), from 2025 to 2026\n", "")
    _, shown, _ = memory(store, "render", "--superseded", "--tenants", str(tenants))
    assert "30 s from 2026 live (o3)" in shown
    assert "60 s" not in shown
    tenants.write_text('{"tenant": "default", "memory": "auto"}')
    status, _, complaint = memory(store, *ask)
    assert (status, complaint.count("\n")) == (2, 1)
    assert f"{tenants}:1: " in complaint


def test_render_leaves_out_what_was_superseded(store: Path) -> None:
    """Only what is in force is shown, unless the rest is asked for; a budget cuts the end off."""
    _, shown, _ = memory(store, "render")
    assert shown == (
        "pool / timeout: 30 s from 2026 live (o3)\n"
        "pool / timeout [staging] [unresolved]: 9 s live (o5); 5 s live (o4)\n"
    )
    _, all_of_it, _ = memory(store, "render", "--superseded", "--format", "verbose")
    assert "status deprecated (supersedes)" in all_of_it
    _, cut, _ = memory(store, "render", "--budget", "40")
    assert cut == "pool / timeout: 30 s from 2026 live (o3)\n(1 more)\n"


def test_advice_comes_from_recorded_queries(store: Path, tmp_path: Path) -> None:
    """The answers of `ask --json` are the record: any provenance asks for closed evidence."""
    _, asked, _ = memory(store, "ask", "pool", "timeout", "--json")
    assert orjson.loads(asked)["value"] == "30 s"
    _, before, _ = memory(store, "ask", "pool", "timeout", "--query", "provenance", "--json")
    queries = tmp_path / "queries.jsonl"
    queries.write_text(asked)
    told_of = [memory(store, "advise", "--queries", str(queries), "--json")[1]]
    queries.write_text(asked + before)
    told_of.append(memory(store, "advise", "--queries", str(queries), "--json")[1])
    first, second = map(orjson.loads, told_of)
    assert (first["memory"], second["memory"]) == ("coarse_discard", "coarse_retain")
    assert second["tiers"]["reverted_revert"] == second["tiers"]["cross_source_conflict"] == 1
    sizes = second["bytes_per_key"]
    assert sizes["coarse_discard"] < sizes["coarse_retain"] < sizes["ledger"]


def test_advice_tells_tiers_by_what_was_learned(store: Path, tmp_path: Path) -> None:
    """Coefficients that always say one tier put every key there; other files are one line."""
    names = {"features": list(NAMES.features), "tiers": list(NAMES.labels)}
    weights = [[0.0] * len(NAMES.features)] * len(NAMES.labels)
    offsets = [float(label == "refines") for label in NAMES.labels]
    learned = tmp_path / "tiers.json"
    learned.write_bytes(orjson.dumps({**names, "weights": weights, "offsets": offsets}))
    options = ("--mix", "snapshot=1", "--tiers", str(learned))
    advice = orjson.loads(memory(store, "advise", *options, "--json")[1])
    assert {tier: count for tier, count in advice["tiers"].items() if count} == {"refines": 2}
    learned.write_text("[]")
    status, out, error = memory(store, "advise", *options)
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert f"--tiers: {learned}: not an object" in error
