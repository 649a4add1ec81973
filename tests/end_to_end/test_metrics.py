"""The metrics of a whole server, scraped as Prometheus does: they say what the server has done, and what it does."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from . import models
from .asking import ONE, ROW, sums
from .conftest import Start
from .gates import Gate
from .running import LOCAL, NAIAD, PATIENCE, Running, post, until

_LISTENS = re.compile(r'metrics frontend listens at (http://[^\s"]+)')

FAILS = """
from naiad_custom import FP32, Array, model

@model
def fails(x: Array[FP32, -1]) -> Array[FP32, -1]:
    raise ValueError("as it was asked to")
"""

COUNTS = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.family = pb_utils.MetricFamily("requests_seen", "Requests so far", pb_utils.MetricFamily.COUNTER)
        self.seen = self.family.Metric(labels={"model": args["model_name"]})

    def execute(self, requests):
        self.seen.increment(len(requests))
        given = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", each)]) for each in given]
"""
COUNTS_CONFIG = """
backend: "python"
input [ { name: "x", data_type: TYPE_FP32, dims: [ -1 ] } ]
output [ { name: "y", data_type: TYPE_FP32, dims: [ -1 ] } ]
"""

SMALL_QUEUE = "dynamic_batching { default_queue_policy { max_queue_size: 2 } }"

Scraped = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(server: Running) -> Scraped:
    """Every sample by its name and labels; the parser calls each counter so and so `_total`."""
    found = until(lambda: _LISTENS.search(server.log))
    with urlopen(found[1].replace("0.0.0.0", "127.0.0.1"), timeout=PATIENCE) as answer:
        text = answer.read().decode()
    samples = [sample for family in parse(text) for sample in family.samples]
    by_name = {(each.name.removesuffix("_total"), frozenset(each.labels.items())): each.value for each in samples}
    assert len(by_name) == len(samples)
    return by_name


def of(scraped: Scraped, name: str, model: str, **labels: str) -> float:
    """One sample of the model's one version."""
    return scraped[name, frozenset({"model": model, "version": "1", **labels}.items())]


def told_of(scraped: Scraped, model: str) -> bool:
    """Whether any sample is about that model."""
    return any(("model", model) in labels for _, labels in scraped)


def test_counters_equal_the_statistics(server: Running) -> None:
    models.write(server.repository, "fails", FAILS)
    server.load("fails")
    server.infer("fails", 1)
    with server.client() as client:
        for _ in range(3):
            client.infer("custom_add_sub", sums())

    scraped = scrape(server)

    for model in ("custom_add_sub", "fails", "echo"):
        statistics = server.statistics(model)
        counts: Any = {name: each["count"] for name, each in statistics["inference_stats"].items()}
        times: Any = {name: each["ns"] // 1000 for name, each in statistics["inference_stats"].items()}
        failures = [
            of(scraped, "nv_inference_request_failure", model, reason=reason)
            for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER")
        ]
        assert failures == [0, 0, counts["fail"], 0]
        assert of(scraped, "nv_inference_request_success", model) == counts["success"]
        assert of(scraped, "nv_inference_count", model) == statistics["inference_count"]
        assert of(scraped, "nv_inference_exec_count", model) == statistics["execution_count"]
        for metric, phase in (("request", "success"), ("queue", "queue"), ("compute_infer", "compute_infer")):
            assert of(scraped, f"nv_inference_{metric}_duration_us", model) == times[phase]
            assert of(scraped, f"naiad_{metric}_duration_seconds_count", model) == counts["success"]
    server.unload("fails")


def test_what_is_pending_is_what_waits_and_what_is_rejected_is_neither(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "waits", SMALL_QUEUE, max_batch_size=1)
    server.load("waits")

    with server.connections(4) as wires:
        wires[0].send(post("/v2/models/waits/infer", ROW))
        gate.wait_until_entered()
        for wire in wires[1:3]:
            wire.send(post("/v2/models/waits/infer", ROW))
        server.read_all()
        wires[3].send(post("/v2/models/waits/infer", ROW))
        refused = wires[3].answer()
        meanwhile = scrape(server)
        gate.open()
        answers = [wire.answer() for wire in wires[:3]]
    after = scrape(server)

    assert refused is not None
    assert (refused.status, [answer and answer.status for answer in answers]) == (503, [200] * 3)
    assert of(meanwhile, "nv_inference_pending_request_count", "waits") == 2
    assert of(meanwhile, "naiad_requests_in_flight", "waits") == 3
    assert of(meanwhile, "nv_inference_request_failure", "waits", reason="REJECTED") == 1
    assert of(meanwhile, "naiad_instance_busy_seconds", "waits", instance="waits_0") > 0
    for name in ("nv_inference_pending_request_count", "naiad_requests_in_flight"):
        assert of(after, name, "waits") == 0
    assert of(after, "naiad_instance_busy_seconds", "waits", instance="waits_0") == 0
    assert of(after, "nv_inference_request_success", "waits") == 3
    server.unload("waits")


def test_batches_are_told_with_their_sizes_and_why_they_were_closed(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "batches", "dynamic_batching { }", max_batch_size=4)
    server.load("batches")
    row = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}).encode()

    with server.connections(6) as wires:
        wires[0].send(post("/v2/models/batches/infer", row))
        gate.wait_until_entered()
        for wire in wires[1:]:
            wire.send(post("/v2/models/batches/infer", row))
        until(lambda: of(scrape(server), "naiad_queue_depth", "batches") == 5)
        gate.open()
        answers = [wire.answer() for wire in wires]
    scraped = scrape(server)

    assert [answer and answer.status for answer in answers] == [200] * 6
    sizes = {le: of(scraped, "naiad_batch_size_bucket", "batches", le=le) for le in ("1", "2", "4", "+Inf")}
    assert sizes == {"1": 2, "2": 2, "4": 3, "+Inf": 3}
    assert of(scraped, "naiad_batch_size_sum", "batches") == of(scraped, "nv_inference_count", "batches") == 6
    closed = {reason: of(scraped, "naiad_batches_closed", "batches", reason=reason) for reason in ("full", "no delay")}
    assert closed == {"full": 1, "no delay": 2}
    server.unload("batches")


def test_a_caller_that_leaves_is_counted_as_such(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "left", max_batch_size=1)
    server.load("left")

    with server.connected() as wire:
        wire.send(post("/v2/models/left/infer", ROW))
        gate.wait_until_entered()
    until(lambda: of(scrape(server), "nv_inference_request_failure", "left", reason="CANCELED") == 1)
    gate.open()

    assert of(scrape(server), "naiad_requests_cancelled", "left", state="executing") == 1
    server.unload("left")


def test_metrics_of_a_model_come_and_go_with_it(server: Running) -> None:
    config = 'metric_tags { key: "team" value: "cats \\"and\\" dogs" }'
    models.write(server.repository, "guest", models.ECHO, config)

    before = scrape(server)
    server.load("guest")
    tagged = {"_team": 'cats "and" dogs'}
    loaded = of(scrape(server), "nv_inference_count", "guest", **tagged)
    seconds = of(scrape(server), "nv_model_load_duration_secs", "guest", **tagged)
    server.unload("guest")
    after = scrape(server)

    assert (told_of(before, "guest"), loaded, told_of(after, "guest")) == (False, 0, False)
    assert seconds > 0


def test_what_a_triton_style_model_counts_is_told_until_it_is_unloaded(server: Running) -> None:
    folder = server.repository / "counts"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(COUNTS)
    (folder / "config.pbtxt").write_text(COUNTS_CONFIG)
    assert server.load("counts").status == 200

    for _ in range(2):
        assert server.infer("counts", 1).status == 200
    counted = scrape(server)
    server.unload("counts")

    own = ("requests_seen", frozenset({("model", "counts")}))
    assert counted[own] == 2
    until(lambda: own not in scrape(server))


def test_the_machine_and_the_process_are_told(server: Running) -> None:
    scraped = scrape(server)

    everywhere: frozenset[tuple[str, str]] = frozenset()
    resident = scraped["naiad_process_memory_bytes", frozenset({("process", "server")})]
    assert 0.5 < resident / server.resident_bytes < 2
    assert 0 <= scraped["nv_cpu_utilization", everywhere] <= 1
    assert 0 < scraped["nv_cpu_memory_used_bytes", everywhere] < scraped["nv_cpu_memory_total_bytes", everywhere]
    assert scraped["nv_pinned_memory_pool_total_bytes", everywhere] >= 0


def test_summaries_and_first_responses_are_told_when_they_are_asked_for(repository: Path, start: Start) -> None:
    quantiles = "--metrics-config=summary_quantiles=0.5:0.05,0.99:0.001"
    running = start(
        "--metrics-config", "summary_latencies=true", "--metrics-config=histogram_latencies=true", quantiles
    )
    assert running.ask("POST", "/v2/models/echo/infer", ONE).status == 200

    scraped = scrape(running)

    median = of(scraped, "nv_inference_request_summary_us", "echo", quantile="0.5")
    assert median == pytest.approx(of(scraped, "nv_inference_request_summary_us_sum", "echo"), rel=0.01)
    assert of(scraped, "nv_inference_queue_summary_us_count", "echo") == 1
    assert of(scraped, "nv_inference_first_response_histogram_ms_bucket", "echo", le="+Inf") == 1
    running.stop()


def test_without_metrics_a_server_counts_for_the_statistics_alone(repository: Path, start: Start) -> None:
    running = start("--allow-metrics=false")

    assert running.infer("echo", 1).status == 200
    assert running.counted("echo", "success") == 1
    assert "metrics frontend" not in running.log
    running.stop()


def test_a_port_of_metrics_that_is_taken_ends_the_start(server: Running, tmp_path: Path) -> None:
    port = until(lambda: _LISTENS.search(server.log))[1].rpartition(":")[2].partition("/")[0]
    (tmp_path / "empty").mkdir()
    words = [word for word in LOCAL if not word.startswith("--metrics-port")]

    done = subprocess.run(
        [NAIAD, "serve", *words, "--http-port=0", f"--metrics-port={port}", tmp_path / "empty"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 1
    assert f"metrics cannot be served on 127.0.0.1 port {port}" in done.stderr
    assert "--metrics-port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("--metrics-config=latency=1", "is none of counter_latencies=true"),
        ("--metrics-config=summary_quantiles=2:1", "not between 0 and 1"),
        ("--metrics-interval-ms=0", "greater than 0"),
        ("--metrics-port=x", "--metrics-port"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, word: str, told: str) -> None:
    done = subprocess.run(
        [NAIAD, "serve", word, tmp_path], capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert (done.returncode, told in done.stderr) == (1, True), done.stderr
