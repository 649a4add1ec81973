"""Readers of the streams of a server, alike over HTTP and over gRPC."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any, Protocol

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

from .running import PATIENCE, Running, Wire
from .streaming import ask_for, events, narrow, vanish


class Reader(Protocol):
    """A reader of one stream."""

    numbers: Iterator[int]
    """What the stream counts to, as it is read."""

    def leave(self) -> None:
        """Go away."""
        ...


class StreamError(Exception):
    """An error that came on the stream."""


class OverHttp:
    """A reader by the generate extension, on a connection for which the system keeps little that was not read."""

    def __init__(self, wire: Wire, count: int, size: int, model: str) -> None:
        self._wire = wire
        wire.send(ask_for(count, size, model))
        self.numbers = (event["number"] if "number" in event else _fail(event["error"]) for event in events(wire))

    def leave(self) -> None:
        vanish(self._wire)


class OverGrpc:
    """A reader by a call of ModelStreamInfer with requests for so many responses of so many letters each.

    The client says that there are no more requests, unless it `goes_on`.
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

    def leave(self) -> None:
        self.call.cancel()

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


@contextmanager
def channel_to(port: int) -> Iterator[grpc.Channel]:
    """A connection of its own, which takes little more than what is read from it."""
    options = {"grpc.use_local_subchannel_pool": 1, "grpc.http2.bdp_probe": 0, "grpc.max_receive_message_length": -1}
    with grpc.insecure_channel(f"127.0.0.1:{port}", list(options.items())) as channel:
        yield channel


@contextmanager
def reading(running: Running, protocol: str, *requests: tuple[int, int, str]) -> Iterator[list[Reader]]:
    """A reader for each of these counts, sizes and models; all are gone at the end of the block."""
    with ExitStack() as stack:
        if protocol == "http":
            wires = stack.enter_context(narrow(running, len(requests)))
            yield [OverHttp(wire, *request) for wire, request in zip(wires, requests, strict=True)]
        else:
            channel = stack.enter_context(channel_to(running.grpc_port))
            yield [OverGrpc(channel, (count, size), model=model) for count, size, model in requests]


def _number(answer: Any) -> int:
    if answer.error_message:
        _fail(answer.error_message)
    return int(np.frombuffer(answer.infer_response.raw_output_contents[0], np.int32)[0])


def _fail(message: str) -> Any:
    raise StreamError(message)
