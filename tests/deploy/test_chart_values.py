"""Every value of the chart reaches the place that it is for: one table of cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.deploy.chart import (
    Manifest,
    RefusedError,
    container_of,
    environment_of,
    manifests,
    one,
    pod_of,
    pods,
    render,
)
from tests.deploy.chart_files import explained
from tests.deploy.product import parse
from tests.deploy.software import CHART

pytestmark = pytest.mark.deploy

Found = list[Manifest]
Look = Callable[[Found], Any]


def worker(found: Found) -> Manifest:
    """The workers."""
    return one(found, "StatefulSet", "-worker")


def archive(found: Found) -> Manifest:
    """The archive."""
    return one(found, "StatefulSet", "-archive")


def server(found: Found) -> Manifest:
    """The server of a claim."""
    return one(found, "Deployment", "-serve")


def variable(name: str, of: Callable[[Found], Manifest] = worker) -> Look:
    """A variable of a container."""
    return lambda found: environment_of(of(found)).get(name)


def in_every_pod(name: str) -> Look:
    """What all pods have there, which is the same."""

    def look(found: Found) -> Any:
        values = [pod.get(name) for pod in pods(found)]
        assert all(value == values[0] for value in values)
        return values[0]

    return look


def of_images(key: str) -> Look:
    """What all containers say of their image."""

    def look(found: Found) -> Any:
        (said,) = {pod["containers"][0][key] for pod in pods(found)}
        return said

    return look


def volume(name: str, of: Callable[[Found], Manifest] = worker) -> Look:
    """A volume of a pod."""

    def look(found: Found) -> Any:
        named = [each for each in pod_of(of(found))["volumes"] or () if each["name"] == name]
        return {key: value for key, value in named[0].items() if key != "name"} if named else None

    return look


def secret(name: str) -> dict[str, Any]:
    """A volume of a secret."""
    return {"secret": {"secretName": name, "defaultMode": 0o440}}


def claim(of: Callable[[Found], Manifest], *path: str) -> Look:
    """What a stateful set claims."""

    def look(found: Found) -> Any:
        (place,) = of(found)["spec"]["volumeClaimTemplates"]
        return at(place["spec"], *path)

    return look


def at(place: Any, *path: str | int) -> Any:
    """What is there; None if the way to it ends before."""
    for step in path:
        if isinstance(place, dict) and step not in place:
            return None
        place = place[step]
    return place


def spec(kind: str, *path: str | int, name: str = "") -> Look:
    """What a manifest has at a path below its spec."""
    return lambda found: at(one(found, kind, name)["spec"], *path)


def label(kind: str, name: str) -> Look:
    """A label of a manifest."""
    return lambda found: one(found, kind)["metadata"]["labels"].get(name)


def there_are(kind: str, name: str = "") -> Look:
    """How many manifests of the kind have a name that ends so."""
    return lambda found: sum(
        each["kind"] == kind and each["metadata"]["name"].endswith(name) for each in found
    )


def job(option: str) -> Look:
    """An option of the job for the topics."""
    return lambda found: parse(container_of(one(found, "Job"))["args"])[option]


def trigger(key: str) -> Look:
    """What KEDA is told."""
    return spec("ScaledObject", "triggers", 0, "metadata", key)


def ports_out(found: Found) -> set[int]:
    """Where pods may go to."""
    policy = one(found, "NetworkPolicy")["spec"]
    return {port["port"] for rule in policy["egress"] for port in rule["ports"]}


def reaches(port: int) -> Look:
    """Whether pods may go to a port."""
    return lambda found: port in ports_out(found)


def runbook(found: Found) -> str:
    """Where the first alert says that its runbook is."""
    rule = one(found, "PrometheusRule")["spec"]["groups"][0]["rules"][0]
    return str(rule["annotations"]["runbook_url"])


KEY_FILE = variable("STANDFAST_KEY_FILE")
OPENAI = ("interpreter.kind=openai", "interpreter.model=m", "interpreter.baseUrl=http://m:8/v1")
SSL = ("kafka.securityProtocol=SSL",)
SASL = ("kafka.securityProtocol=SASL_SSL", "kafka.existingSecret=k")
SERVE = ("serve.enabled=true", "serve.existingClaim=c")
KEDA = ("autoscaling.enabled=true",)
MONITOR, RULE = ("serviceMonitor.enabled=true",), ("prometheusRule.enabled=true",)
USERNAME = "{'secretKeyRef': {'name': 'k', 'key': 'username'}}"
API_KEY = "{'secretKeyRef': {'name': 's', 'key': 'api-key'}}"

CASES: list[tuple[str, str, Look, Any, tuple[str, ...]]] = [
    # value, changed to, where it shows, what shows there, what else is set
    ("image.repository", "r/i", of_images("image"), "r/i:0.1.0", ()),
    ("image.tag", "v9", of_images("image"), "standfast:v9", ()),
    ("image.pullPolicy", "Never", of_images("imagePullPolicy"), "Never", ()),
    ("imagePullSecrets", "[0].name=s", in_every_pod("imagePullSecrets"), [{"name": "s"}], ()),
    ("nameOverride", "blue", there_are("StatefulSet", "standfast-blue-worker"), 1, ()),
    ("fullnameOverride", "blue", there_are("StatefulSet", "blue-archive"), 1, ()),
    ("kafka.bootstrap", "b:1", variable("STANDFAST_KAFKA_BOOTSTRAP", archive), "b:1", ()),
    ("kafka.bootstrap", "b:1234", reaches(1234), True, ()),
    ("kafka.securityProtocol", "SSL", variable("STANDFAST_KAFKA_SECURITY_PROTOCOL"), "SSL", ()),
    ("kafka.saslMechanism", "PLAIN", variable("STANDFAST_KAFKA_SASL_MECHANISM"), "PLAIN", SASL),
    ("kafka.saslMechanism", "PLAIN", trigger("sasl"), "plaintext", SASL + KEDA),
    ("kafka.existingSecret", "k", variable("STANDFAST_KAFKA_USERNAME"), USERNAME, SASL),
    ("kafka.caSecret", "c", volume("ca"), secret("c"), SSL),
    ("kafka.caSecret", "c", volume("ca", archive), secret("c"), SSL),
    ("kafka.certificateSecret", "c", volume("certificate"), secret("c"), SSL),
    ("topics.enabled", "false", there_are("Job"), 0, ()),
    ("topics.partitions", "24", job("partitions"), 24, ()),
    ("topics.replication", "2", job("replication"), 2, ()),
    ("worker.settings", ".erasure_window_days=30", job("window_days"), 30, ()),
    ("topics.replication", "2", variable("STANDFAST_WORKER_REPLICATION"), "2", ()),
    ("worker.replicas", "5", spec("StatefulSet", "replicas", name="-worker"), 5, ()),
    ("worker.group", "blue", variable("STANDFAST_WORKER_GROUP"), "blue", ()),
    ("worker.group", "blue", trigger("consumerGroup"), "blue", KEDA),
    ("worker.drainSeconds", "90", variable("STANDFAST_WORKER_DRAIN_SECONDS_MAX"), "90", ()),
    (
        "worker.drainSeconds",
        "91",
        lambda found: pod_of(worker(found))["terminationGracePeriodSeconds"],
        111,
        (),
    ),
    ("worker.alertTenants", "{a,b}", job("tenants"), ("a", "b"), ()),
    ("worker.alertTenants", "{a}", variable("STANDFAST_WORKER_ALERT_TENANTS"), '["a"]', ()),
    ("worker.metricTenants", "{a}", variable("STANDFAST_WORKER_METRIC_TENANTS"), '["a"]', ()),
    (
        "worker.settings",
        ".records_max=5000000",
        variable("STANDFAST_WORKER_RECORDS_MAX"),
        "5000000",
        (),
    ),
    ("worker.settings", ".log_claims=true", variable("STANDFAST_WORKER_LOG_CLAIMS"), "true", ()),
    ("worker.storage.size", "3Gi", claim(worker, "resources", "requests", "storage"), "3Gi", ()),
    ("worker.storage.storageClassName", "fast", claim(worker, "storageClassName"), "fast", ()),
    (
        "worker.resources",
        ".limits.memory=7Gi",
        lambda found: container_of(worker(found))["resources"]["limits"]["memory"],
        "7Gi",
        (),
    ),
    (
        "worker.podAnnotations",
        ".team=blue",
        lambda found: worker(found)["spec"]["template"]["metadata"]["annotations"],
        {"team": "blue"},
        (),
    ),
    (
        "worker.nodeSelector",
        ".disk=ssd",
        lambda found: pod_of(worker(found))["nodeSelector"],
        {"disk": "ssd"},
        (),
    ),
    (
        "worker.tolerations",
        "[0].key=k",
        lambda found: pod_of(worker(found))["tolerations"],
        [{"key": "k"}],
        (),
    ),
    (
        "worker.affinity",
        ".podAffinity.x=y",
        lambda found: pod_of(worker(found))["affinity"],
        {"podAffinity": {"x": "y"}},
        (),
    ),
    ("interpreter.kind", "openai", variable("STANDFAST_INTERPRETER_KIND"), "openai", OPENAI),
    ("interpreter.model", "big", variable("STANDFAST_INTERPRETER_MODEL"), "big", ()),
    ("interpreter.baseUrl", "http://m:8/v1", variable("OPENAI_BASE_URL"), "http://m:8/v1", ()),
    ("interpreter.baseUrl", "http://m:8/v1", reaches(8), True, OPENAI),
    ("interpreter.baseUrl", "https://m/v1", reaches(443), True, OPENAI),
    ("interpreter.baseUrl", "http://m/v1", reaches(80), True, OPENAI),
    ("interpreter.existingSecret", "s", variable("OPENAI_API_KEY"), API_KEY, ()),
    (
        "interpreter.settings",
        ".tries_max=5",
        variable("STANDFAST_INTERPRETER_TRIES_MAX"),
        "5",
        (),
    ),
    ("tokens.existingSecret", "t", volume("tokens"), secret("t"), ()),
    ("tokens.existingSecret", "t", volume("tokens", archive), secret("t"), ()),
    ("tokens.existingSecret", "t", there_are("ConfigMap", "-nobody"), 0, ()),
    (
        "tokens.existingSecret",
        "t",
        variable("STANDFAST_WORKER_TOKENS"),
        "/etc/standfast/tokens/tokens.jsonl",
        (),
    ),
    ("tenants.existingConfigMap", "t", volume("tenants"), {"configMap": {"name": "t"}}, ()),
    (
        "tenants.existingConfigMap",
        "t",
        variable("STANDFAST_WORKER_TENANTS"),
        "/etc/standfast/tenants/tenants.jsonl",
        (),
    ),
    ("encryption.existingSecret", "e", volume("encryption"), secret("e"), ()),
    ("encryption.existingSecret", "e", volume("encryption", archive), secret("e"), ()),
    ("encryption.existingSecret", "e", volume("encryption", server), secret("e"), SERVE),
    ("encryption.existingSecret", "e", KEY_FILE, "/etc/standfast/encryption/keys", ()),
    (
        "encryption.key",
        "main",
        KEY_FILE,
        "/etc/standfast/encryption/main",
        ("encryption.existingSecret=e",),
    ),
    ("archive.enabled", "false", there_are("StatefulSet", "-archive"), 0, ()),
    ("archive.storage.size", "9Ti", claim(archive, "resources", "requests", "storage"), "9Ti", ()),
    ("archive.storage.storageClassName", "slow", claim(archive, "storageClassName"), "slow", ()),
    (
        "archive.resources",
        ".limits.memory=7Gi",
        lambda found: container_of(archive(found))["resources"]["limits"]["memory"],
        "7Gi",
        (),
    ),
    ("serve.enabled", "true", there_are("Service", "-serve"), 1, SERVE),
    (
        "serve.existingClaim",
        "old",
        volume("data", server),
        {"persistentVolumeClaim": {"claimName": "old", "readOnly": True}},
        SERVE,
    ),
    (
        "serve.file",
        "a/b.duckdb",
        lambda found: str(parse(container_of(server(found))["args"])["db"]),
        "/data/a/b.duckdb",
        SERVE,
    ),
    ("serve.replicas", "3", spec("Deployment", "replicas"), 3, SERVE),
    (
        "serve.resources",
        ".limits.memory=7Gi",
        lambda found: container_of(server(found))["resources"]["limits"]["memory"],
        "7Gi",
        SERVE,
    ),
    ("autoscaling.enabled", "true", there_are("ScaledObject", "-worker"), 1, ()),
    ("autoscaling.enabled", "true", lambda found: worker(found)["spec"].get("replicas"), None, ()),
    ("autoscaling.kind", "hpa", there_are("HorizontalPodAutoscaler"), 1, KEDA),
    ("autoscaling.minReplicas", "3", spec("ScaledObject", "minReplicaCount"), 3, KEDA),
    ("autoscaling.maxReplicas", "9", spec("ScaledObject", "maxReplicaCount"), 9, KEDA),
    (
        "autoscaling.maxReplicas",
        "9",
        lambda found: len(yaml.safe_load(environment_of(worker(found))["STANDFAST_WORKER_PEERS"])),
        9,
        KEDA,
    ),
    ("autoscaling.lagPerWorker", "2000000", trigger("lagThreshold"), "2000000", KEDA),
    ("podDisruptionBudget.enabled", "false", there_are("PodDisruptionBudget"), 0, ()),
    (
        "podDisruptionBudget.maxUnavailable",
        "2",
        spec("PodDisruptionBudget", "maxUnavailable"),
        2,
        (),
    ),
    ("networkPolicy.enabled", "false", there_are("NetworkPolicy"), 0, ()),
    (
        "networkPolicy.from",
        "[0].podSelector.x=y",
        spec("NetworkPolicy", "ingress", 0, "from", 1),
        {"podSelector": {"x": "y"}},
        (),
    ),
    ("networkPolicy.egressPorts", "{4318}", reaches(4318), True, ()),
    ("serviceMonitor.enabled", "true", there_are("ServiceMonitor"), 1, ()),
    (
        "serviceMonitor.interval",
        "5s",
        spec("ServiceMonitor", "endpoints", 0, "interval"),
        "5s",
        MONITOR,
    ),
    ("serviceMonitor.labels", ".a=b", label("ServiceMonitor", "a"), "b", MONITOR),
    ("prometheusRule.enabled", "true", there_are("PrometheusRule"), 1, ()),
    ("prometheusRule.labels", ".a=b", label("PrometheusRule", "a"), "b", RULE),
    ("prometheusRule.runbookUrl", "https://x/y", runbook, "https://x/y#standfastdown", RULE),
    (
        "serviceAccount.annotations",
        ".a=b",
        lambda found: one(found, "ServiceAccount")["metadata"].get("annotations"),
        {"a": "b"},
        (),
    ),
]


@pytest.mark.parametrize(
    ("value", "changed", "look", "expected", "with_"),
    CASES,
    ids=[f"{case[0]}-{number}" for number, case in enumerate(CASES)],
)
def test_a_changed_value_reaches_its_place(
    value: str, changed: str, look: Look, expected: Any, with_: tuple[str, ...]
) -> None:
    """It shows there, and something else does without it."""
    other = [each for each in with_ if not each.startswith(f"{value}=")]
    setting = f"{value}{changed}" if changed[0] in ".[" else f"{value}={changed}"
    assert look(manifests(render("minimal", *other, setting))) == expected
    try:
        before = look(manifests(render("minimal", *other)))
    except (ValueError, KeyError, IndexError, RefusedError):
        return  # there is no such place without it
    assert before != expected


def test_every_value_has_a_case() -> None:
    """No value of the chart is left out of the table."""
    paths = {path for path, _ in explained((CHART / "values.yaml").read_text())}
    assert {value for value, *_ in CASES} == paths
