"""The dashboard of deploy/grafana and the alerts of deploy/prometheus against the metrics that a server exports."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import yaml

from naiad_metrics.options import OPTIONS as METRICS_OPTIONS

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "naiad.json").read_text())
ALERTS = [
    rule
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
QUERIES = {
    f"{panel['title']}, {target['refId']}": target["expr"]
    for panel in DASHBOARD["panels"]
    for target in panel["targets"]
} | {rule["alert"]: rule["expr"] for rule in ALERTS}
_OVERLAYS = DEPLOY / "kubernetes" / "overlays"
(KEDA,) = yaml.safe_load((_OVERLAYS / "keda" / "scaled-object.yaml").read_text())["spec"]["triggers"]
(HPA,) = yaml.safe_load((_OVERLAYS / "autoscaled" / "horizontal-pod-autoscaler.yaml").read_text())["spec"]["metrics"]
QUERIES |= {"KEDA": KEDA["metadata"]["query"], "HPA": HPA["pods"]["metric"]["name"]}
OF_PROMETHEUS = {"namespace", "pod", "job", "instance"}
"""Labels that Prometheus adds to what it reads; a label of the server with such a name gets `exported_` in front."""
MODEL = """
from naiad_custom import FP32, Array, model


@model
def same(x: Array[FP32, 1]) -> Array[FP32, 1]:
    return x
"""
INFER = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}).encode()
OPTIONS = (
    "--http-address=127.0.0.1",
    "--http-port=0",
    "--metrics-port=0",
    "--allow-grpc=false",
    "--allow-dashboard=false",
)
_SELECTOR = re.compile(r"((?:nv|naiad)_[a-z_]+)(?:\{([^}]*)\})?")
_BY = re.compile(r"by \(([^)]*)\)")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Each metric with its labels as Prometheus stores them, of a server that has answered a request."""
    repository = tmp_path_factory.mktemp("models")
    file = repository / "same" / "1" / "model.py"
    file.parent.mkdir(parents=True)
    file.write_text(MODEL)
    command = [Path(sys.executable).with_name("naiad"), "serve", repository, *OPTIONS]
    with subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            log = ""
            while "metrics frontend listens" not in log or "http frontend listens" not in log:
                line = process.stdout.readline()
                assert line, log
                log += line
            urls = dict(re.findall(r"(http|metrics) frontend listens at ([^\s\"]+)", log))
            with urlopen(Request(f"{urls['http']}/v2/models/same/infer", INFER), timeout=30) as answer:
                assert answer.status == 200
            with urlopen(urls["metrics"], timeout=30) as page:
                lines = [line for line in page.read().decode().splitlines() if not line.startswith("#")]
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
        finally:
            process.kill()
    names: dict[str, set[str]] = {}
    for line in lines:
        metric, labels = re.match(r"(\w+)(?:\{(.*)\})? ", line).groups()  # type: ignore[union-attr]
        read = re.findall(r'(\w+)="', labels or "")
        names.setdefault(metric, set()).update(f"exported_{each}" if each in OF_PROMETHEUS else each for each in read)
    return names


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_query_asks_for_metrics_and_labels_that_there_are(query: str, exported: dict[str, set[str]]) -> None:
    labels: set[str] = set()
    assert "naiad_" in query or "nv_" in query or "up{" in query
    for metric, selector in _SELECTOR.findall(query):
        assert metric in exported
        assert set(re.findall(r"(\w+)(?:=~|!=|=)", selector)) <= exported[metric] | OF_PROMETHEUS
        labels |= exported[metric]
    for group in _BY.findall(query):
        assert set(group.split(", ")) <= labels


def test_the_variables_are_labels_of_models(exported: dict[str, set[str]]) -> None:
    queries = [each["query"]["query"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]

    for query in queries:
        metric, label = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", query).groups()  # type: ignore[union-attr]
        assert label in exported[metric]


def test_the_panels_do_not_overlap_and_have_titles_of_their_own() -> None:
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]

    assert len(cells) == len(set(cells))
    assert len({panel["title"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_page_names_every_alert() -> None:
    page = (DEPLOY.parent / "docs" / "deploy.md").read_text()

    assert [rule["alert"] for rule in ALERTS if f"| `{rule['alert']}` |" not in page] == []
    assert [rule["alert"] for rule in ALERTS if not rule["annotations"]["summary"]] == []


def test_the_scrape_reads_the_port_of_the_metrics_and_the_file_of_alerts() -> None:
    scrape = yaml.safe_load((DEPLOY / "prometheus" / "scrape.yaml").read_text())
    (port,) = [option.default for option in METRICS_OPTIONS if option.name == "metrics-port"]

    assert scrape["scrape_configs"][0]["static_configs"] == [{"targets": [f"127.0.0.1:{port}"]}]
    assert all((DEPLOY / "prometheus" / name).is_file() for name in scrape["rule_files"])
