"""The manifests of deploy/kubernetes against the schemas of Kubernetes, and against the server that they start."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from naiad_cli.main import command_parser

from ..reading import assert_printed, blocks_of
from .operators import SCHEMAS

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
KUBECTL = Path(sys.executable).with_name("kubectl")
OVERLAYS = ("cpu", "gpu", "autoscaled", "keda")
OURS = {
    "apps/v1",
    "v1",
    "policy/v1",
    "autoscaling/v2",
}
"""The kinds that Kubernetes itself has; the others belong to operators, whose schemas it does not have."""


DEFAULT_GRACE = 30
"""The seconds between SIGTERM and SIGKILL of a pod that says nothing about them."""


@cache
def validator(api: str, kind: str) -> Any:
    """The validator of a kind of an operator; its schema is checked once, which takes longer than what it validates."""
    schema = SCHEMAS[api, kind]
    of_schema = jsonschema.validators.validator_for(schema)
    of_schema.check_schema(schema)
    return of_schema(schema)


def check(document: Any) -> None:
    """Raise ValidationError for a document that is not what its operator takes."""
    validator(document["apiVersion"], document["kind"]).validate(document)


def documents(folder: Path = FOLDER) -> Iterator[tuple[Path, Any]]:
    for path in sorted(folder.rglob("*.yaml")):
        if path.name != "kustomization.yaml":
            yield path, yaml.safe_load(path.read_text())


WHOLE = [
    (path, document)
    for path, document in documents()
    if document["apiVersion"] in OURS and path.name not in ("gpu.yaml", "replicas.yaml")
]


@pytest.mark.parametrize(("path", "document"), WHOLE, ids=[path.stem for path, _ in WHOLE])
def test_a_manifest_is_valid(path: Path, document: Any) -> None:
    kubernetes_validate.validate(document, "1.34", strict=True)


OF_OPERATORS = [(path, document) for path, document in documents() if document["apiVersion"] not in OURS]


@pytest.mark.parametrize(("path", "document"), OF_OPERATORS, ids=[path.stem for path, _ in OF_OPERATORS])
def test_a_manifest_of_an_operator_is_valid(path: Path, document: Any) -> None:
    check(document)

    if containers := document["spec"].get("containers"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": {"containers": containers}}
        kubernetes_validate.validate(pod, "1.34", strict=True)


def test_every_kind_of_an_operator_has_a_manifest() -> None:
    assert {(document["apiVersion"], document["kind"]) for _, document in OF_OPERATORS} == {*SCHEMAS}


@pytest.mark.parametrize(
    ("path", "keys", "value"),
    [
        ("overlays/cpu/pod-monitor.yaml", ("podMetricsEndpoints", 0, "interval"), "15"),
        ("overlays/cpu/pod-monitor.yaml", ("podMetricsEndpoint",), []),
        ("overlays/keda/scaled-object.yaml", ("triggers", 0, "metadata", "threshold"), 4),
        ("overlays/keda/scaled-object.yaml", ("maxReplicas",), 8),
        ("kserve/cluster-serving-runtime.yaml", ("supportedModelFormats", 0, "version"), 1),
        ("kserve/cluster-serving-runtime.yaml", ("protocolVersions", 0), "v3"),
        ("kserve/inference-service.yaml", ("predictor", "model", "storageURI"), "s3://bucket/model"),
        ("kserve/inference-service.yaml", ("predictor", "model", "storageUri"), "/models"),
    ],
)
def test_a_mistake_in_a_manifest_of_an_operator_is_noticed(path: str, keys: tuple[Any, ...], value: object) -> None:
    document = yaml.safe_load((FOLDER / path).read_text())
    section = document["spec"]
    for key in keys[:-1]:
        section = section[key]
    section[keys[-1]] = value

    with pytest.raises(jsonschema.ValidationError):
        check(document)


@pytest.mark.parametrize(("key", "value"), [("replicas", "two"), ("replica", 2)], ids=["type", "unknown key"])
def test_a_mistake_in_a_manifest_is_noticed(key: str, value: object) -> None:
    deployment = yaml.safe_load((FOLDER / "base" / "deployment.yaml").read_text())
    deployment["spec"][key] = value

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, "1.34", strict=True)


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("kustomization.yaml")), ids=lambda path: path.parent.name)
def test_a_kustomization_names_files_that_exist(path: Path) -> None:
    kustomization = yaml.safe_load(path.read_text())
    named = [*kustomization["resources"], *(patch["path"] for patch in kustomization.get("patches", ()))]

    assert named
    assert [name for name in named if not (path.parent / name).exists()] == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_gives_valid_manifests(overlay: str) -> None:
    applied = subprocess.run(
        [KUBECTL, "kustomize", FOLDER / "overlays" / overlay], capture_output=True, text=True, check=True, timeout=60
    )
    built = list(yaml.safe_load_all(applied.stdout))

    assert {"Deployment", "Service", "PodDisruptionBudget", "PodMonitor"} <= {each["kind"] for each in built}
    for each in built:
        if each["apiVersion"] in OURS:
            kubernetes_validate.validate(each, "1.34", strict=True)
        else:
            check(each)


def test_an_overlay_gives_what_the_page_shows() -> None:
    command, shown = (
        each.text for each in blocks_of("deploy.md") if "kustomize" in each.text or each.language == "text"
    )
    path = os.pathsep.join([str(KUBECTL.parent), "/usr/bin", "/bin"])

    built = subprocess.run(
        ["bash", "-c", command], cwd=FOLDER.parents[1], env={"PATH": path}, capture_output=True, text=True, check=True
    )

    assert_printed(built.stdout, shown)


def containers() -> Iterator[tuple[str, Any]]:
    for path, document in documents():
        spec = document.get("spec", {})
        spec = spec.get("template", {}).get("spec", spec)
        for container in spec.get("containers", ()):
            if "args" in container:
                yield path.stem, container


CONTAINERS = dict(containers())


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_a_container_starts_the_server_with_options_that_exist(container: Any) -> None:
    arguments = command_parser("serve").parse_args(container["args"])  # ends with status 2 for one that does not

    assert arguments.command == "serve"
    assert len(arguments.repositories) == 1


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_a_container_has_no_rights(container: Any) -> None:
    context = container["securityContext"]

    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("name", CONTAINERS)
def test_pods_are_killed_only_after_the_server_has_drained(name: str) -> None:
    (spec,) = (document["spec"] for path, document in documents() if path.stem == name)
    grace = spec.get("template", {}).get("spec", {}).get("terminationGracePeriodSeconds", DEFAULT_GRACE)
    words = dict(word.removeprefix("--").split("=") for word in CONTAINERS[name]["args"] if "=" in word)

    program, seconds = CONTAINERS[name]["lifecycle"]["preStop"]["exec"]["command"]

    assert program == "sleep"  # a server without clients ends at once, while load balancers still connect to it
    # a stop that stands still ends after five seconds more
    assert float(seconds) + float(words["exit-timeout-secs"]) + 5 < grace
    assert float(words["lame-duck-secs"]) <= float(words["exit-timeout-secs"]) / 2


def test_the_ports_of_services_monitors_and_probes_are_the_containers() -> None:
    ports = {port["name"] for port in CONTAINERS["deployment"]["ports"]}
    targets = {
        port["targetPort"]
        for path, document in documents(FOLDER / "base")
        if document["kind"] == "Service"
        for port in document["spec"]["ports"]
    }
    monitor = yaml.safe_load((FOLDER / "overlays" / "cpu" / "pod-monitor.yaml").read_text())
    probes = [CONTAINERS["deployment"][f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")]

    assert targets <= ports
    assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= ports
    assert {probe["httpGet"]["port"] for probe in probes} <= ports


def test_the_monitor_gives_its_targets_the_job_of_the_alerts() -> None:
    monitor = yaml.safe_load((FOLDER / "overlays" / "cpu" / "pod-monitor.yaml").read_text())
    (deployment,) = (document for path, document in documents(FOLDER / "base") if document["kind"] == "Deployment")
    alerts = (FOLDER.parent / "prometheus" / "alerts.yaml").read_text()

    job = deployment["spec"]["template"]["metadata"]["labels"][monitor["spec"]["jobLabel"]]

    assert set(re.findall(r'job="([^"]*)"', alerts)) == {job}


def test_only_readiness_waits_for_models() -> None:
    probes = {
        kind: CONTAINERS["deployment"][f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")
    }

    assert [probe["path"] for probe in probes.values()] == ["/v2/health/live", "/v2/health/live", "/v2/health/ready"]
    assert CONTAINERS["cluster-serving-runtime"]["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready"


def test_kserve_routes_grpc_to_a_port_that_says_so() -> None:
    runtime = yaml.safe_load((FOLDER / "kserve" / "cluster-serving-runtime.yaml").read_text())["spec"]
    names = [port["name"] for port in runtime["containers"][0]["ports"]]

    assert any("grpc" in name for name in names)
    assert {"v2", "grpc-v2"} == set(runtime["protocolVersions"])
    service = yaml.safe_load((FOLDER / "kserve" / "inference-service.yaml").read_text())["spec"]["predictor"]["model"]
    assert service["modelFormat"]["name"] in {each["name"] for each in runtime["supportedModelFormats"]}
