"""The live streams."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np


def test_the_stream_of_models_begins_at_once_and_goes_on_each_second(server):
    server.client.infer(INPUT=np.ones(2, np.float32))

    first, second = server.events("models", 2)

    assert (first[0], second[0]) == ("first", "next")
    (row,) = second[1]["rows"]
    assert (row["model"], row["version"], row["state"], row["requests"]) == ("m", 1, "READY", 1)
    assert row["rate"] == 0


def test_the_stream_of_a_model_has_the_history_first_and_then_its_points(server):
    first, second = server.events("models/m/versions/1", 2)

    assert len(first[1]["points"]["ago"]) >= 1
    assert second[1]["points"]["ago"] == [0.0]
    details = second[1]["details"]
    assert [each["name"] for each in details["phases"]] == ["request", "queue", "input", "infer", "output"]
    assert [each["state"] for each in details["instances"]] == ["READY"]


def test_a_model_that_is_gone_is_not_shown_as_ready(server):
    ((_, document),) = server.events("models/gone/versions/1", 1)

    assert document["details"]["row"]["state"] == "UNLOADED"
    assert document["details"]["row"]["reason"] == "it is in no repository of this server"


def test_an_execution_that_goes_on_counts_as_busy(server, backend):
    backend.hold()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.client.infer, INPUT=np.ones(2, np.float32))
        backend.wait_until_held()

        *_, last = server.events("models/m/versions/1", 3)

        backend.release()
        answer.result(20)
    assert 0.5 < last[1]["details"]["busy"] <= 1


def test_sampling_ends_with_the_last_viewer(server):
    server.events("models", 1)
    sampler = server.frontend._dashboard._sampler

    async def idle(_server):
        async with asyncio.timeout(10):
            while sampler.viewers or sampler._task is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return sampler.samples

    samples = server.client.wait_for(idle)
    assert samples >= 1
    assert server.client.wait_for(idle) == samples


def test_a_server_stops_at_once_while_a_page_is_open(start_server, models):
    with socket.create_connection(start_server().address) as connection:
        connection.sendall(b"GET /events/slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stream = connection.makefile("rb")
        while not stream.readline().startswith(b"event: first"):
            pass

        start_server.stop()

        assert b"event: end" in stream.read()
