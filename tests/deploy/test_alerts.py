"""Alert rules: metrics that exist, runbooks that are written, and when each of them fires."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.product import used_metrics
from tests.deploy.software import DEPLOY, PROMTOOL, ran

FOLDER = DEPLOY / "prometheus"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"]
    for rule in group["rules"]
]
NAMES = [rule["alert"] for rule in RULES]
SEVERITIES = {"critical", "warning"}


def test_every_metric_of_a_rule_exists(told: set[str]) -> None:
    """It is one of those that a worker or an archive tells."""
    assert used_metrics("rate(standfast_nothing[5m])") - told == {"standfast_nothing"}
    for rule in RULES:
        used = used_metrics(rule["expr"]) or {"up"}
        assert used <= told, rule["alert"]


def test_every_rule_says_how_bad_it_is_and_what_to_do() -> None:
    """A severity, a summary, and a section of the runbook under its own name."""
    headings = re.findall(r"^#+ (\w+)$", (DEPLOY / "README.md").read_text(), re.MULTILINE)
    assert len(NAMES) == len(set(NAMES))
    for rule in RULES:
        assert rule["labels"].keys() == {"severity"}
        assert rule["labels"]["severity"] in SEVERITIES
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["annotations"]["runbook_url"] == f"deploy/README.md#{rule['alert'].lower()}"
    assert [name for name in headings if name.startswith("Standfast")] == NAMES


@pytest.mark.deploy
def test_the_rules_fire_when_they_must() -> None:
    """Each is tried where it must fire and where it must not."""
    for command in (("check", "config", FOLDER / "prometheus.yaml"), ("test", "rules", _tests())):
        said = ran(PROMTOOL, *command)
        assert said.returncode == 0, said.stdout + said.stderr
    tried = yaml.safe_load(_tests().read_text())["tests"]
    outcomes = [
        (case["alertname"], bool(case["exp_alerts"]))
        for each in tried
        for case in each["alert_rule_test"]
    ]
    assert sorted(outcomes) == sorted((name, fires) for name in NAMES for fires in (True, False))


@pytest.mark.deploy
@pytest.mark.parametrize("expression", ["vector(1) == 0", "vector(1)"], ids=["never", "always"])
def test_the_tests_of_the_rules_can_fail(expression: str, tmp_path: Path) -> None:
    """With rules that never fire, or always, promtool complains of every alert."""
    rules = yaml.safe_load((FOLDER / "rules.yaml").read_text())
    for rule in rules["groups"][0]["rules"]:
        rule["expr"] = expression
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    (tmp_path / "tests.yaml").write_text(_tests().read_text())
    said = ran(PROMTOOL, "test", "rules", tmp_path / "tests.yaml")
    assert said.returncode != 0
    complained = said.stdout + said.stderr
    assert [name for name in NAMES if f"alertname: {name}, time" not in complained] == []


def _tests() -> Path:
    return FOLDER / "rules_test.yaml"
