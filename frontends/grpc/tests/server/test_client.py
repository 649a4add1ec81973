"""Streams of Triton's client for gRPC; what it has in common with other clients is in the table of all frontends."""

from queue import Queue

import grpc
import numpy as np
import pytest
import tritonclient.grpc.aio as triton_aio

from naiad.backend import Reply
from naiad.errors import InvalidArgumentError
from naiad_testing.backends import FakeBackend

from .conftest import PATIENCE, values_input

SHORT = 0.2
"""Seconds after which a client gives up on a model that never answers."""


class Gathered:
    """A callback that keeps what comes."""

    def __init__(self):
        self._came = Queue()

    def __call__(self, result, error):
        self._came.put(error if result is None else result)

    def take(self, count):
        return [self._came.get(timeout=PATIENCE) for _ in range(count)]


def count_up(batch):
    """As many responses as the number in INPUT; below zero one and an error."""
    sender, count = batch.sender(0), int(batch.input("INPUT")[0])
    for number in range(abs(count)):
        sender.send(Reply({"OUTPUT": np.array([number], np.float32)}))
    sender.send(InvalidArgumentError("counted below zero") if count < 0 else None, final=True)
    return [None]


@pytest.fixture
def models(models):
    """The models of all tests, and the decoupled `repeat`."""
    FakeBackend("counting", count_up).write(models, "repeat", "model_transaction_policy { decoupled: true }")
    return models


@pytest.fixture
def server(start_server):
    """A server with all of them."""
    return start_server(more=(FakeBackend("counting", count_up),))


@pytest.fixture
def stream(client):
    """The callback of a stream of the client that has begun."""
    gathered = Gathered()
    client.start_stream(gathered)
    yield gathered
    client.stop_stream()


def numbers(results):
    return [float(each.as_numpy("OUTPUT")[0]) for each in results]


def split(outcomes):
    """The messages of the errors, sorted by their requests' ids, and the results."""
    errors = sorted(each.message() for each in outcomes if isinstance(each, Exception))
    return errors, [each for each in outcomes if not isinstance(each, Exception)]


def test_a_stream_carries_many_requests(client, stream):
    for number in range(20):
        client.async_stream_infer("mirror", values_input(number), request_id=str(number))

    assert [each.get_response().id for each in stream.take(20)] == [str(number) for number in range(20)]


def test_a_stream_says_which_response_is_the_last(client, stream):
    client.async_stream_infer("repeat", values_input(2), enable_empty_final_response=True)
    answers = [each.get_response() for each in stream.take(3)]

    assert [each.parameters["triton_final_response"].bool_param for each in answers] == [False, False, True]
    assert [len(each.outputs) for each in answers] == [1, 1, 0]


def test_an_error_among_the_responses_of_a_stream_does_not_end_it(client, stream):
    client.async_stream_infer("mirror", values_input(1), request_id="a", sequence_id=5, sequence_start=True)
    client.async_stream_infer("nothing", values_input(1), request_id="b")
    client.async_stream_infer("repeat", values_input(-1), request_id="c")
    errors, good = split(stream.take(4))
    client.async_stream_infer("mirror", values_input(1), request_id="d")
    (again,) = stream.take(1)

    assert sorted(each.get_response().id for each in good) == ["a", "c"]
    assert ["'nothing' is not found" in errors[0], "counted below zero" in errors[1]] == [True, True]
    assert again.get_response().id == "d"


def test_stopping_a_stream_waits_for_what_is_on_its_way(client):
    gathered = Gathered()
    client.start_stream(gathered, compression_algorithm="gzip")
    client.async_stream_infer("repeat", values_input(500))
    client.stop_stream()

    assert numbers(gathered.take(500)) == list(range(500))


@pytest.mark.parametrize(
    ("options", "status"), [({}, "CANCELLED"), ({"stream_timeout": SHORT}, "DEADLINE_EXCEEDED")], ids=["cancel", "late"]
)
def test_a_stream_that_ends_early_takes_its_requests_back(client, backend, options, status):
    gathered = Gathered()
    backend.hold()
    client.start_stream(gathered, **options)
    client.async_stream_infer("mirror", values_input(1))
    backend.wait_until_held(PATIENCE)
    if status == "CANCELLED":
        client.stop_stream(cancel_requests=True)

    (error,) = gathered.take(1)
    backend.release()
    client.stop_stream()

    assert error.status() == f"StatusCode.{status}"


def test_a_stream_of_the_asyncio_client_has_responses_and_errors(server):
    async def gather(_server):
        async with triton_aio.InferenceServerClient(server.target) as client:

            async def requests():
                for name, count in (("a", 2), ("b", -1)):
                    yield {"model_name": "repeat", "inputs": values_input(count), "request_id": name}

            return [
                error or (result.get_response().id, *numbers([result]))
                async for result, error in client.stream_infer(requests())
            ]

    *good, failed = sorted(server.serving.wait_for(gather), key=lambda each: isinstance(each, Exception))

    assert sorted(good) == [("a", 0), ("a", 1), ("b", 0)]
    assert "counted below zero" in failed.message()


def test_a_stream_of_the_asyncio_client_ends_at_its_timeout(server):
    server.backend.hold()

    async def gather(_server):
        async with triton_aio.InferenceServerClient(server.target) as client:

            async def requests():
                yield {"model_name": "mirror", "inputs": values_input(1)}

            with pytest.raises(grpc.aio.AioRpcError) as caught:
                [each async for each in client.stream_infer(requests(), stream_timeout=SHORT)]
            return caught.value.code()

    assert server.serving.wait_for(gather) is grpc.StatusCode.DEADLINE_EXCEEDED
