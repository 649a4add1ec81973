"""What the metrics port tells: families with their words and labels, and the counters that requests determine."""

import http.client
import re
from dataclasses import replace
from typing import Any

from ..answers import Answer, Case, Ports
from ..http_asking import PATIENCE, ask, bytes_case, request
from .http_making import A, B, adds, infer, requested, tensor

_SAMPLE = re.compile(r"(?P<name>[^ {]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_COUNTERS = (
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_count",
    "nv_inference_exec_count",
)
_COUNTED = ("add_sub", "chain", "failing", "halfway")
OPTIONS = ("--metrics-config=summary_latencies=true", "--metrics-config=histogram_latencies=true")


def cases() -> list[Case]:
    """Every case of this page."""
    return [
        adds("metrics/good"),
        infer("metrics/refused", "add_sub", [A]),
        *(infer(f"metrics/failing_{how}", "failing", [tensor("IN", "INT32", [1], [how])]) for how in (0, 1)),
        *(infer(f"metrics/counting_{number}", "counting", [tensor("IN", "INT32", [1], [number])]) for number in (3, 4)),
        infer("metrics/chain", "chain", [A | {"name": "A"}, B | {"name": "B"}], requested("TWICE_A")),
        infer("metrics/chain_refused", "chain", [A | {"name": "A"}]),
        *(infer(f"metrics/halfway_{how}", "halfway", [tensor("FIRST", "INT32", [1], [how])]) for how in (0, 1)),
        Case("metrics/get", _metrics, ("$.nv_*.help",)),
        _elsewhere("metrics/post", request("POST", "/metrics", b"")),
        _elsewhere("metrics/other_path", request("GET", "/nothing")),
        _elsewhere("metrics/root", request("GET", "/")),
        _elsewhere("metrics/query", request("GET", "/metrics?x=1"), ("$",)),
    ]


def _elsewhere(key: str, content: bytes, any_value: tuple[str, ...] = ()) -> Case:
    """Bytes that are sent to the port of the metrics; of the answer only status and headers count."""

    def at_metrics(ports: Ports) -> Answer:
        return replace(ask(replace(ports, http=ports.metrics), content), document=None, content=b"")

    return replace(bytes_case(key, content, any_value), ask=at_metrics)


def _metrics(ports: Ports) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", ports.metrics, timeout=PATIENCE)
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    headers = {"content-type": response.headers.get("Content-Type", "")}
    return Answer(str(response.status), headers, families(text))


def families(text: str) -> dict[str, Any]:
    """Families by name: words, kind, the label names of their samples, and the values of the counters of requests."""
    results: dict[str, Any] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            results[name] = {"help": words, "labels": set()}
        elif line.startswith("# TYPE "):
            results[name]["kind"] = line.rsplit(" ", 1)[1]
        elif sample := _SAMPLE.fullmatch(line):
            labels = dict(_LABEL.findall(sample["labels"] or ""))
            results[name]["labels"].add(f"{sample['name']}({','.join(sorted(labels))})")
            if name in _COUNTERS and labels["model"] in _COUNTED:
                message = " ".join(labels.get(label, "") for label in ("model", "version", "reason"))
                results[name].setdefault("values", {})[message.strip()] = float(sample["value"])
            elif name.startswith("own_"):
                results[name].setdefault("values", {})[sample["labels"] or ""] = float(sample["value"])
    return {name: each | {"labels": sorted(each["labels"])} for name, each in results.items()}
