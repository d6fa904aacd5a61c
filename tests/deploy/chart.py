"""Renders the chart, and finds things in what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.software import CHART, HELM, ran

NAMESPACE = "chat"
VERSIONS = ("1.33", "1.37")
VALUE_SETS = ("minimal", "production", "everything")
Manifest = dict[str, Any]


class RefusedError(Exception):
    """Helm does not render these values; the message is what it says."""


def value_set(name: str) -> Path:
    """The file of a value set."""
    return CHART / "ci" / f"{name}.yaml"


def render(
    name: str = "minimal", *settings: str, version: str = VERSIONS[-1], release: str = "standfast"
) -> str:
    """The manifests as Helm writes them; `settings` are of --set. Raises RefusedError."""
    given = [word for setting in settings for word in ("--set", setting)]
    place = ("--namespace", NAMESPACE, "--kube-version", f"{version}.0")
    said = ran(HELM, "template", release, CHART, *place, "--values", value_set(name), *given)
    if said.returncode != 0:
        raise RefusedError(said.stderr)
    return said.stdout


def manifests(text: str) -> list[Manifest]:
    """What Kubernetes would get."""
    return [each for each in yaml.safe_load_all(text) if each]


def one(found: list[Manifest], kind: str, name: str = "") -> Manifest:
    """The only manifest of a kind, whose name ends so."""
    (it,) = (
        each for each in found if each["kind"] == kind and each["metadata"]["name"].endswith(name)
    )
    return it


def pod_of(manifest: Manifest) -> Manifest:
    """The pod that it makes."""
    pod: Manifest = manifest["spec"]["template"]["spec"]
    return pod


def pods(found: list[Manifest]) -> Iterator[Manifest]:
    """Every pod that they make."""
    return (pod_of(each) for each in found if "template" in each.get("spec", {}))


def container_of(manifest: Manifest) -> Manifest:
    """Its only container."""
    (container,) = pod_of(manifest)["containers"]
    found: Manifest = container
    return found


def environment_of(manifest: Manifest) -> dict[str, str]:
    """The variables of its container; those from elsewhere are what they refer to."""
    variables = container_of(manifest).get("env") or ()
    return {each["name"]: each.get("value") or str(each["valueFrom"]) for each in variables}


def leaves(values: Any, path: str = "") -> Iterator[str]:
    """The paths of all that is no mapping, and of mappings that are empty."""
    if not isinstance(values, dict) or not values:
        yield path
        return
    for name, value in values.items():
        yield from leaves(value, f"{path}.{name}" if path else name)
