"""Dashboards: JSON as Grafana's provisioning reads it, and queries of metrics that exist."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.deploy.product import used_metrics
from tests.deploy.software import DEPLOY

GRAFANA = DEPLOY / "grafana"
FILES = sorted((GRAFANA / "dashboards").glob("*.json"))
BOARDS: list[dict[str, Any]] = [json.loads(path.read_text()) for path in FILES]
COLUMNS = 24
KINDS = {"stat", "timeseries"}
by_name = pytest.mark.parametrize("board", BOARDS, ids=[path.stem for path in FILES])


@by_name
def test_every_query_is_of_metrics_that_exist(board: dict[str, Any], told: set[str]) -> None:
    """In panels and in variables."""
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries += [each["definition"] for each in board["templating"]["list"] if "definition" in each]
    assert all(used_metrics(query) <= told for query in queries)
    assert all(used_metrics(query) or "up{" in query for query in queries)


@by_name
def test_every_variable_of_a_query_is_declared(board: dict[str, Any]) -> None:
    """Those of the dashboard, or one that Grafana gives."""
    declared = {each["name"] for each in board["templating"]["list"]} | {"__rate_interval", "__all"}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(board))) <= declared


@by_name
def test_panels_lie_beside_each_other(board: dict[str, Any]) -> None:
    """Ids are unique, all have a title and a description, and no two overlap."""
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["type"] in KINDS
        assert panel["title"]
        assert panel["description"].endswith(".")
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= COLUMNS
        assert not cells & taken
        taken |= cells


def test_they_are_provisioned() -> None:
    """Each has an id of its own, no number of a database, and lies where the provider looks."""
    assert len(BOARDS) == 2
    assert len({board["uid"] for board in BOARDS}) == len(BOARDS)
    assert all(re.fullmatch(r"[\w-]{1,40}", board["uid"]) for board in BOARDS)
    assert all("id" not in board and board["schemaVersion"] >= 39 for board in BOARDS)
    (provider,) = _read("dashboards/standfast.yaml")["providers"]
    (source,) = _read("datasources/prometheus.yaml")["datasources"]
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    mounts = dict(each.split(":")[:2] for each in services["grafana"]["volumes"])
    assert mounts["./grafana/dashboards"] == provider["options"]["path"]
    assert provider["type"] == "file"
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    assert "127.0.0.1:9090:9090" in services["prometheus"]["ports"]


def _read(name: str) -> Any:
    return yaml.safe_load((GRAFANA / "provisioning" / name).read_text())
