"""The chart: what it renders is what Kubernetes and the product take, and stays so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from processor.app.interpreter_settings import InterpreterSettings
from processor.app.settings import WorkerSettings
from processor.cli.worker import CLOSE_SECONDS_MAX
from tests.deploy.chart import (
    VALUE_SETS,
    VERSIONS,
    Manifest,
    RefusedError,
    container_of,
    environment_of,
    leaves,
    manifests,
    one,
    pod_of,
    pods,
    render,
    value_set,
)
from tests.deploy.chart_files import explained, made
from tests.deploy.dockerfile import read_dockerfile
from tests.deploy.product import check_settings, is_setting, parse
from tests.deploy.software import CHART, DEPLOY, HELM, PROMTOOL, python_tool, ran
from tests.project.sources import pyproject

pytestmark = pytest.mark.deploy

GOLDEN = Path(__file__).parent / "golden" / "selectors-0.1.0.json"
NOT_OF_KUBERNETES = {"ServiceMonitor", "PrometheusRule", "ScaledObject", "TriggerAuthentication"}
SECRETS = {"username", "password", "api-key", "tokens.jsonl"}
LAST_STAGE = read_dockerfile(DEPLOY / "Dockerfile")[-1]


@pytest.fixture(scope="module", params=VALUE_SETS)
def found(request: pytest.FixtureRequest) -> list[Manifest]:
    """What each value set renders to."""
    return manifests(render(request.param))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", VALUE_SETS)
def test_what_it_renders_is_valid(name: str, version: str, tmp_path: Path) -> None:
    """Strictly, for two versions of Kubernetes; only kinds of operators have no schema there."""
    rendered = tmp_path / "rendered.yaml"
    rendered.write_text(render(name, version=version))
    validate = (python_tool("kubernetes-validate"), "--strict", "-k", version)
    said = ran(*validate, rendered)
    assert said.returncode == 0, said.stdout + said.stderr
    told = said.stdout + said.stderr
    kinds = {each["kind"] for each in manifests(rendered.read_text())}
    unknown = set(re.findall(r"find schema for kind (\w+)", told))
    assert unknown == kinds & NOT_OF_KUBERNETES
    rendered.write_text(rendered.read_text().replace("serviceName:", "servicename:", 1))
    assert ran(*validate, rendered).returncode != 0


def test_the_linter_of_charts_has_nothing_against_it() -> None:
    """Not even a warning."""
    for name in VALUE_SETS:
        said = ran(HELM, "lint", "--strict", CHART, "--values", value_set(name))
        assert said.returncode == 0, said.stdout
        assert "[WARNING]" not in said.stdout


def test_it_has_the_version_of_the_product() -> None:
    """The application that it installs is this one."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == pyproject()["project"]["version"]
    image = container_of(one(manifests(render()), "StatefulSet", "-worker"))["image"]
    assert image == f"standfast:{chart['appVersion']}"


def test_every_command_is_one_and_every_variable_a_setting(found: list[Manifest]) -> None:
    """The arguments parse with the product's own command line, and the settings are taken."""
    of_image = LAST_STAGE.environment()
    for manifest in found:
        if "template" not in manifest.get("spec", {}):
            continue
        parse(container_of(manifest)["args"])
        given = environment_of(manifest)
        given.pop("POD_NAME", None)
        assert [name for name in given if not is_setting(name)] == []
        if manifest["metadata"]["name"].endswith("-worker"):
            pod = f"{manifest['metadata']['name']}-0"
            resolved = {k: v.replace("$(POD_NAME)", pod) for k, v in given.items()}
            if "OPENAI_API_KEY" in resolved:  # a reference to a secret looks like no key
                resolved["OPENAI_API_KEY"] = "key"
            settings = check_settings({**of_image, **resolved})
            assert settings.canonical_url in settings.peers
            assert settings.instance == pod


def test_what_the_schema_lets_through_are_settings() -> None:
    """The other settings that a worker and an interpreter may be given exist."""
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    for part, model in (("worker", WorkerSettings), ("interpreter", InterpreterSettings)):
        names = schema[part]["properties"]["settings"]["propertyNames"]["enum"]
        assert set(names) <= set(model.model_fields)


def test_a_worker_is_killed_only_after_its_drain(found: list[Manifest]) -> None:
    """The grace of the pod is longer than the drain and what closing may take after it."""
    worker = one(found, "StatefulSet", "-worker")
    drain = float(environment_of(worker)["STANDFAST_WORKER_DRAIN_SECONDS_MAX"])
    assert pod_of(worker)["terminationGracePeriodSeconds"] > drain + CLOSE_SECONDS_MAX


def test_no_pod_has_rights(found: list[Manifest]) -> None:
    """As the image's user, on a read-only root, without capabilities and without a token."""
    user = int(LAST_STAGE.one("USER").rest.partition(":")[0])
    for pod in pods(found):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == user
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        (volume,) = LAST_STAGE.one("VOLUME").words()
        writable = [m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")]
        assert writable == [volume]
        assert {m["name"] for m in container["volumeMounts"]} <= {
            "data",
            *(each["name"] for each in pod["volumes"] or ()),
        }


def test_probes_ask_what_the_product_answers(found: list[Manifest]) -> None:
    """At the port at which the image listens."""
    port = int(LAST_STAGE.environment()["STANDFAST_WORKER_LISTEN_PORT"])
    served = [pod["containers"][0] for pod in pods(found) if "ports" in pod["containers"][0]]
    assert served
    for container in served:
        assert container["ports"] == [{"name": "http", "containerPort": port}]
        assert container["startupProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
        assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
    worker = container_of(one(found, "StatefulSet", "-worker"))
    assert worker["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}


def test_it_holds_no_secret(found: list[Manifest]) -> None:
    """Secrets are referred to by name and key; none is rendered."""
    assert not any(each["kind"] == "Secret" for each in found)
    for pod in pods(found):
        for variable in pod["containers"][0].get("env") or ():
            hidden = ("PASSWORD", "USERNAME", "API_KEY", "TOKEN")
            if variable["name"].endswith(hidden):
                assert variable["valueFrom"]["secretKeyRef"]["key"] in SECRETS


def test_services_find_their_pods(found: list[Manifest]) -> None:
    """What a service, a budget or a stateful set selects are the pods of one component."""
    labels = [
        each["spec"]["template"]["metadata"]["labels"]
        for each in found
        if "template" in each.get("spec", {})
    ]
    for each in found:
        selector = each.get("spec", {}).get("selector")
        if each["kind"] in NOT_OF_KUBERNETES or selector is None:
            continue
        wanted = selector.get("matchLabels", selector)
        assert sum(wanted.items() <= has.items() for has in labels) == 1, each["metadata"]["name"]


def test_the_chart_can_be_tried_where_it_is_installed(found: list[Manifest]) -> None:
    """`helm test` asks the service of the gate with a command of the product."""
    pod = one(found, "Pod")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (container,) = pod["spec"]["containers"]
    gate = one(found, "Service", "-gate")
    assert [port["port"] for port in gate["spec"]["ports"]] == [80]
    asked = parse(container["args"])["url"]
    assert asked == f"http://{gate['metadata']['name']}/livez"


def test_what_the_operator_scrapes_are_services_of_ours() -> None:
    """The monitor selects the services of worker and archive, and their port has that name."""
    found = manifests(render("everything"))
    monitor = one(found, "ServiceMonitor")["spec"]
    (expression,) = monitor["selector"]["matchExpressions"]
    scraped = [
        each
        for each in found
        if each["kind"] == "Service"
        and monitor["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
        and each["metadata"]["labels"][expression["key"]] in expression["values"]
        and monitor["endpoints"][0]["port"] in [port["name"] for port in each["spec"]["ports"]]
    ]
    names = sorted(each["metadata"]["name"] for each in scraped)
    assert names == ["standfast-archive", "standfast-worker"]
    assert {each["metadata"]["labels"][monitor["jobLabel"]] for each in scraped} == {"standfast"}


def test_the_rules_of_the_operator_are_those_that_were_tried(tmp_path: Path) -> None:
    """The same groups, and promtool takes them; a runbook elsewhere changes the address alone."""
    ours = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text())
    rules = one(manifests(render("everything")), "PrometheusRule")["spec"]
    assert rules == ours
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    assert ran(PROMTOOL, "check", "rules", tmp_path / "rules.yaml").returncode == 0
    elsewhere = one(manifests(render("production")), "PrometheusRule")["spec"]
    for rule in elsewhere["groups"][0]["rules"]:
        address = f"https://runbooks.example/standfast#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == address


@pytest.mark.parametrize("path", made(), ids=lambda path: path.name)
def test_made_files_are_fresh(path: Path) -> None:
    """They are what `make chart` writes; if not, run it."""
    assert path.read_text() == made()[path]


def test_every_value_is_explained() -> None:
    """Each has its line in the README, and its place in the schema."""
    text = (CHART / "values.yaml").read_text()
    paths = [path for path, _ in explained(text)]
    assert len(paths) == len(set(paths))
    for leaf in leaves(yaml.safe_load(text)):
        assert any(leaf == path or leaf.startswith(f"{path}.") for path in paths), leaf
    schema = json.loads((CHART / "values.schema.json").read_text())
    for path in paths:
        place: Any = schema
        for name in path.split("."):
            place = place["properties"][name]


def test_what_cannot_be_changed_is_as_in_the_version_before() -> None:
    """Selectors, names and claims of 0.1.0, so that every upgrade of it goes through."""
    kept = {name: _unchangeable(manifests(render(name))) for name in VALUE_SETS}
    assert kept == json.loads(GOLDEN.read_text())


def _unchangeable(found: list[Manifest]) -> dict[str, Any]:
    """What Kubernetes does not let be changed in place, by kind and name."""
    return {
        f"{each['kind']}/{each['metadata']['name']}": {
            "selector": each["spec"]["selector"],
            **{name: each["spec"][name] for name in FIXED if name in each["spec"]},
        }
        for each in found
        if each["kind"] in ("StatefulSet", "Deployment")
    }


FIXED = ("serviceName", "podManagementPolicy", "volumeClaimTemplates")

REFUSED = [
    ("minimal", "kafka.bootstrap=nowhere", "/kafka/bootstrap"),
    ("minimal", "kafka.bootstrap=", "/kafka/bootstrap"),
    ("minimal", "wrker.replicas=1", "wrker"),
    ("minimal", "worker.replicas=0", "/worker/replicas"),
    ("minimal", "worker.replicas=many", "/worker/replicas"),
    ("minimal", "worker.settings.nonsense=1", "nonsense"),
    ("minimal", "worker.settings.open_gate=true", "open_gate"),
    ("minimal", "worker.alertTenants={a b}", "/worker/alertTenants/0"),
    ("minimal", "worker.storage.size=20", "/worker/storage/size"),
    ("minimal", "kafka.securityProtocol=TLS", "/kafka/securityProtocol"),
    ("minimal", "kafka.securityProtocol=SASL_SSL", "kafka.existingSecret"),
    ("minimal", "interpreter.kind=openai", "interpreter.model"),
    ("minimal", "interpreter.baseUrl=vllm:8000", "/interpreter/baseUrl"),
    ("production", "interpreter.baseUrl=", "interpreter.baseUrl"),
    ("minimal", "worker.replicas=13", "topics.partitions"),
    ("everything", "autoscaling.maxReplicas=25", "topics.partitions"),
    ("everything", "autoscaling.minReplicas=7", "autoscaling.minReplicas"),
    ("minimal", "serve.enabled=true", "serve.existingClaim"),
    ("minimal", "serve.file=../archive.duckdb", "/serve/file"),
    ("minimal", "serve.file=a/../../b", "/serve/file"),
    ("minimal", "serve.file=..", "/serve/file"),
    ("minimal", "serve.file=/etc/passwd", "/serve/file"),
    ("minimal", "tokens.existingSecret=Not_A_Name", "/tokens/existingSecret"),
    ("minimal", "kafka.existingSecret=k", "kafka.existingSecret: PLAINTEXT sends no"),
    ("minimal", "kafka.caSecret=c", "kafka.securityProtocol: PLAINTEXT encrypts nothing"),
    ("minimal", "kafka.certificateSecret=c", "kafka.securityProtocol: PLAINTEXT encrypts"),
    ("everything", "worker.settings.log_claims=true", "worker.settings.log_claims"),
    ("minimal", "nameOverride=a.b", "/nameOverride"),
    ("minimal", "fullnameOverride=1a", "/fullnameOverride"),
]


@pytest.mark.parametrize(("name", "setting", "named"), REFUSED)
def test_values_that_cannot_be_are_refused_by_name(name: str, setting: str, named: str) -> None:
    """The message says where."""
    with pytest.raises(RefusedError) as refused:
        render(name, setting)
    assert named in str(refused.value)
