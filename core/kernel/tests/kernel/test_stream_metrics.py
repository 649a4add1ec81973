"""Statistics and metrics of requests with several responses."""

import asyncio
from pathlib import Path

from naiad import Server
from naiad.errors import InvalidArgumentError
from naiad_kit.metrics import Distribution
from naiad_statistics.reports import ModelStatistics
from naiad_testing.in_loop import request
from naiad_testing.loops import until
from naiad_testing.metric_values import collect

from .metered import METRICS
from .streaming import answers_of, reply, sending, serving

HISTOGRAMS = ((("histogram_latencies", True),),)


def first_responses(server: Server) -> int:
    """How many are in the histogram."""
    (value,) = (
        sample.value
        for family in collect(server)
        if family.name == "nv_inference_first_response_histogram_ms"
        for sample in family.samples
    )
    assert isinstance(value, Distribution)
    return sum(value.counts)


def of(server: Server) -> ModelStatistics:
    (statistics,) = server.statistics("m")
    return statistics


async def test_a_stream_counts_as_one_request_with_one_first_response(tmp_path: Path) -> None:
    execute = sending((reply(1), False), (reply(2), False), (None, True))

    async with serving(tmp_path, execute, plugins=[METRICS], metrics_config=HISTOGRAMS) as server:
        await answers_of(server)
        statistics, first = of(server), first_responses(server)

    assert (statistics.success.count, statistics.inference_count, first) == (1, 1, 1)
    assert statistics.queue.ns <= statistics.success.ns
    kinds = {
        index: (each.success.count, each.empty_response.count) for index, each in statistics.response_stats.items()
    }
    assert kinds == {"0": (1, 0), "1": (1, 0), "2": (0, 1)}


async def test_a_stream_without_responses_has_no_first_response(tmp_path: Path) -> None:
    async with serving(tmp_path, sending((None, True)), plugins=[METRICS], metrics_config=HISTOGRAMS) as server:
        await answers_of(server)

        assert (of(server).success.count, first_responses(server)) == (1, 0)


async def test_a_stream_that_ends_in_an_error_is_a_failure_of_the_backend(tmp_path: Path) -> None:
    execute = sending((reply(1), False), (InvalidArgumentError("no"), True))

    async with serving(tmp_path, execute, plugins=[METRICS], metrics_config=HISTOGRAMS) as server:
        await answers_of(server)
        statistics, first = of(server), first_responses(server)
        failures = {
            dict(sample.labels)["reason"]: sample.value
            for family in collect(server)
            if family.name == "nv_inference_request_failure"
            for sample in family.samples
        }

    assert (statistics.success.count, statistics.fail.count, first) == (0, 1, 1)
    assert failures == {"REJECTED": 0, "CANCELED": 0, "BACKEND": 1, "OTHER": 0}


async def test_a_request_that_streams_is_in_flight_and_not_pending(tmp_path: Path) -> None:
    senders = []

    def execute(batch):
        senders.append(batch.sender(0))
        return [None]

    def gauge(server: Server, name: str) -> float:
        ((sample,),) = (family.samples for family in collect(server) if family.name == name)
        return sample.value

    async with serving(tmp_path, execute, plugins=[METRICS]) as server:
        waiting = asyncio.ensure_future(anext(server.stream(request("m", 1.0))))
        await until(lambda: senders and gauge(server, "naiad_instance_busy_seconds") == 0)
        streaming = (gauge(server, "nv_inference_pending_request_count"), gauge(server, "naiad_requests_in_flight"))
        senders.pop().send(reply(1), final=True)
        await waiting
        over = gauge(server, "naiad_requests_in_flight")

    assert (streaming, over) == ((0, 1), 0)
