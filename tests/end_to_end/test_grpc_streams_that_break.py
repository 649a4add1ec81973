"""Streams over gRPC whose readers stand still, vanish or come in crowds, and servers that stop in the middle."""

import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from .conftest import Start, assert_sound
from .running import PATIENCE, Running, until
from .streaming import BY_THREADS, ENDLESS, Belongings, sent, serving_streams, stand_still, write_streams

VANISHING = """
import sys
from tests.end_to_end.test_grpc_streams_that_break import ENDLESS, Stream, channel_to

with channel_to(int(sys.argv[1])) as channel:
    streams = [Stream(channel, (ENDLESS, 20_000), model=sys.argv[2]) for _ in range(int(sys.argv[3]))]
    for stream in streams:
        next(stream.numbers)
    print("reading", flush=True)
    for _ in streams[0].numbers:
        pass
"""


@contextmanager
def channel_to(port: int) -> Iterator[grpc.Channel]:
    """A connection of its own, which takes little more than what is read from it."""
    options = {"grpc.use_local_subchannel_pool": 1, "grpc.http2.bdp_probe": 0, "grpc.max_receive_message_length": -1}
    with grpc.insecure_channel(f"127.0.0.1:{port}", list(options.items())) as channel:
        yield channel


class Stream:
    """A call of ModelStreamInfer with requests for so many responses of so many letters each.

    The client says that there are no more requests, unless it `goes_on`. `numbers` reads the responses.
    """

    def __init__(
        self,
        channel: grpc.Channel,
        *request: tuple[int, int],
        model: str = "tells",
        goes_on: bool = False,
        timeout: float = PATIENCE,
    ) -> None:
        self._over = Event()
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        self.call = stub.ModelStreamInfer(self._requests(request, model, goes_on), timeout=timeout)
        self.call.add_callback(self._over.set)
        self.numbers = map(_number, self.call)

    def _requests(self, request: tuple[tuple[int, int], ...], model: str, goes_on: bool) -> Iterator[Any]:
        for numbers in request:
            inputs = [
                service_pb2.ModelInferRequest.InferInputTensor(name=name, datatype="INT32", shape=[1])
                for name in ("count", "size")
            ]
            content = [np.int32(number).tobytes() for number in numbers]
            yield service_pb2.ModelInferRequest(model_name=model, inputs=inputs, raw_input_contents=content)
        if goes_on:
            self._over.wait()


class StreamError(Exception):
    """An error that came on the stream."""


def _number(answer: Any) -> int:
    if answer.error_message:
        raise StreamError(answer.error_message)
    return int(np.frombuffer(answer.infer_response.raw_output_contents[0], np.int32)[0])


@pytest.fixture(scope="module")
def streaming(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of models that stream, and of one that does not."""
    with serving_streams(tmp_path_factory.mktemp("streams")) as running:
        with channel_to(running.grpc_port) as channel:
            for model in ("tells", "tells_by_threads"):
                assert list(Stream(channel, (3, 1), model=model).numbers) == [0, 1, 2]
        yield running


@pytest.fixture
def server(streaming: Running) -> Iterator[Running]:
    """That server, which every test must leave sound, and as it was."""
    assert_sound(streaming)
    before = Belongings(streaming)
    yield streaming
    assert_sound(streaming)
    before.assert_they_are_back()


@pytest.fixture
def channel(server: Running) -> Iterator[grpc.Channel]:
    with channel_to(server.grpc_port) as channel:
        yield channel


def assert_nothing_is_in_flight(running: Running, model: str) -> None:
    """A model is unloaded when all its requests are over."""
    running.unload(model)
    until(lambda: [entry["state"] for entry in running.entries(model)] == ["UNAVAILABLE"])
    running.load(model)


@pytest.mark.parametrize("size", [20_000, 1_000_000])
@pytest.mark.parametrize(("model", "count"), [("tells", 30), ("tells_by_threads", BY_THREADS)])
@pytest.mark.parametrize("together", [True, False])
def test_readers_that_stand_still_cost_little_memory_and_hold_up_no_other_client(
    server: Running, channel: grpc.Channel, model: str, count: int, size: int, together: bool
) -> None:
    before = server.resident_bytes

    each, calls = (count, 1) if together else (1, count)
    streams = [Stream(channel, *[(ENDLESS, size)] * each, model=model, goes_on=together) for _ in range(calls)]
    first = [next(stream.numbers) for stream in streams]
    stand_still(server, model)
    grown = server.resident_bytes - before
    with channel_to(server.grpc_port) as other:
        others = [list(Stream(other, (100, 1)).numbers) for _ in range(5)]
    for stream in streams:
        stream.call.cancel()
    assert_nothing_is_in_flight(server, model)

    assert grown < 20_000_000 + count * (1_000_000 + 10 * size)
    assert (others, first) == ([list(range(100))] * 5, [0] * calls)


@pytest.mark.parametrize("model", ["tells", "tells_by_threads"])
def test_a_reader_that_stood_still_misses_nothing(server: Running, channel: grpc.Channel, model: str) -> None:
    stream = Stream(channel, (2000, 10_000), model=model)

    first = next(stream.numbers)
    stand_still(server, model)

    assert [first, *stream.numbers] == list(range(2000))


@pytest.mark.parametrize(("model", "count"), [("tells", 40), ("tells_by_threads", BY_THREADS)])
def test_readers_whose_deadline_passes_take_their_requests_back(
    server: Running, channel: grpc.Channel, model: str, count: int
) -> None:
    streams = [Stream(channel, (ENDLESS, 5000), model=model, timeout=0.3) for _ in range(count)]

    codes = {stream.call.code() for stream in streams}

    assert codes == {grpc.StatusCode.DEADLINE_EXCEEDED}
    assert_nothing_is_in_flight(server, model)


@pytest.mark.parametrize(("model", "count"), [("tells", 40), ("tells_by_threads", BY_THREADS)])
def test_clients_that_are_killed_take_their_requests_back(server: Running, model: str, count: int) -> None:
    command = [sys.executable, "-c", VANISHING, str(server.grpc_port), model, str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"reading\n"
        client.kill()

    assert_nothing_is_in_flight(server, model)


def test_two_hundred_streams_at_once_come_whole(server: Running, channel: grpc.Channel) -> None:
    streams = [Stream(channel, (100 + index, 50)) for index in range(200)]

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda stream: list(stream.numbers), streams))

    assert got == [list(range(100 + index)) for index in range(200)]


def test_storms_of_clients_that_leave_leave_nothing_behind(server: Running) -> None:
    chance = random.Random(11)

    for _ in range(3):
        with ExitStack() as stack:
            channels = [stack.enter_context(channel_to(server.grpc_port)) for _ in range(4)]
            streams = []
            for _ in range(100):
                requests = [(chance.choice([1, 100, ENDLESS]), chance.choice([100, 5000])) for _ in range(3)]
                streams.append(Stream(chance.choice(channels), *requests, goes_on=chance.random() < 0.5))
            for stream in streams:
                if chance.random() < 0.5:
                    next(stream.numbers)
                if chance.random() < 0.5:
                    stream.call.cancel()
    assert_nothing_is_in_flight(server, "tells")


@pytest.mark.parametrize("model", ["tells", "tells_by_threads"])
def test_a_model_that_is_unloaded_ends_its_streams_first(server: Running, channel: grpc.Channel, model: str) -> None:
    streams = [Stream(channel, (3000, 5000), model=model, goes_on=True) for _ in range(4)]
    first = [next(stream.numbers) for stream in streams]
    stand_still(server, model)

    server.unload(model)
    during = server.entries(model)
    got = [[next(stream.numbers) for _ in range(2999)] for stream in streams]
    until(lambda: [entry["state"] for entry in server.entries(model)] == ["UNAVAILABLE"])
    server.load(model)
    for stream in streams:
        stream.call.cancel()

    assert [entry["state"] for entry in during] == ["UNLOADING"]
    assert (first, got) == ([0] * 4, [list(range(1, 3000))] * 4)


def test_a_server_that_stops_lets_streams_come_to_their_end(start: Start, tmp_path: Path) -> None:
    write_streams(tmp_path / "models")
    running = start()

    with channel_to(running.grpc_port) as channel:
        streams = [Stream(channel, (1000, 5000), model=model) for model in ("tells", "tells_by_threads") * 2]
        first = [next(stream.numbers) for stream in streams]
        stand_still(running)
        running.terminate()
        until(lambda: "Requests in flight have" in running.log)
        got = [list(stream.numbers) for stream in streams]

    assert (first, got) == ([0] * 4, [list(range(1, 1000))] * 4)
    assert running.exit_status() == 0


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("model", ["tells", "tells_by_threads"])
def test_a_server_that_stops_cuts_streams_off_that_do_not_end(
    start: Start, tmp_path: Path, model: str, reads: bool
) -> None:
    write_streams(tmp_path / "models")
    running = start("--exit-timeout-secs=1")

    with channel_to(running.grpc_port) as channel, ThreadPoolExecutor(4) as pool:
        streams = [Stream(channel, (ENDLESS, 5000), model=model) for _ in range(4)]
        reading = [pool.submit(list, stream.numbers) for stream in streams] if reads else []
        until(lambda: sent(running, model) > 4)
        running.terminate()
        status = running.exit_status()
        errors = [each.exception() for each in reading]

    assert status in (0, 1)  # whether the model is closed in time depends on who is faster; the streams are cut off
    assert [error for error in errors if not isinstance(error, grpc.RpcError | StreamError)] == []
    assert "Traceback" not in running.log, running.log
