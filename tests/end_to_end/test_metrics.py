"""The metrics of a whole server, scraped as Prometheus does: they say what the server has done, and what it does."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families as parse

from . import models
from .asking import sums
from .running import PATIENCE, Running, until

_LISTENS = re.compile(r'metrics frontend listens at (http://[^\s"]+)')

FAILS = """
from naiad_custom import FP32, Array, model

@model
def fails(x: Array[FP32, -1]) -> Array[FP32, -1]:
    raise ValueError("as it was asked to")
"""


Scraped = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(server: Running) -> Scraped:
    """Every sample by its name and labels; the parser calls each counter so and so `_total`."""
    samples = [sample for family in parse(page(server)) for sample in family.samples]
    by_name = {(each.name.removesuffix("_total"), frozenset(each.labels.items())): each.value for each in samples}
    assert len(by_name) == len(samples)
    return by_name


def page(server: Running) -> str:
    """The text that a scraper gets."""
    match = until(lambda: _LISTENS.search(server.log))
    with urlopen(match[1].replace("0.0.0.0", "127.0.0.1"), timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def of(scraped: Scraped, name: str, model: str, **labels: str) -> float:
    """One sample of the model's one version."""
    return scraped[name, frozenset({"model": model, "version": "1", **labels}.items())]


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


def test_labels_come_in_the_order_of_their_names(server: Running) -> None:
    lines = [line for line in page(server).splitlines() if line.startswith("nv_inference_request_failure{")]

    assert 'nv_inference_request_failure{model="echo",reason="OTHER",version="1"} 0' in lines


def test_the_machine_and_the_process_are_reported(server: Running) -> None:
    scraped = scrape(server)

    everywhere: frozenset[tuple[str, str]] = frozenset()
    resident = scraped["naiad_process_memory_bytes", frozenset({("process", "server")})]
    assert 0.5 < resident / server.resident_bytes < 2
    assert 0 <= scraped["nv_cpu_utilization", everywhere] <= 1
    assert 0 < scraped["nv_cpu_memory_used_bytes", everywhere] < scraped["nv_cpu_memory_total_bytes", everywhere]
    assert scraped["nv_pinned_memory_pool_total_bytes", everywhere] >= 0
