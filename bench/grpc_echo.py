"""The least that gRPC costs on grpc.aio: a server that answers every ModelInfer with the same bytes and does nothing.

What else a load generator asks is passed on to the server behind it, so that both look alike.
"""

import argparse
import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import grpc
import numpy as np
import uvloop

from naiad_grpc.messages import message_class
from servers import Running, free_port

_SERVICE = "/inference.GRPCInferenceService/"
_INFER = _SERVICE + "ModelInfer"
_STATISTICS = _SERVICE + "ModelStatistics"
_NS = 1000
"""What a request is said to have taken: load generators want counters that move."""


class Echo(grpc.GenericRpcHandler):
    """Answers ModelInfer itself and lets the server behind it answer everything else."""

    def __init__(self, channel: grpc.aio.Channel, answer: bytes) -> None:
        self._channel = channel
        self._infer = grpc.unary_unary_rpc_method_handler(self._answer)
        self._said = answer
        self._count = 0

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        if details.method == _INFER:
            return self._infer
        ask = self._channel.unary_unary(details.method)

        async def pass_on(message: bytes, _context: grpc.aio.ServicerContext) -> bytes:
            reason = await ask(message)
            return self._counted(reason) if details.method == _STATISTICS else reason

        return grpc.unary_unary_rpc_method_handler(pass_on)

    async def _answer(self, _message: bytes, _context: grpc.aio.ServicerContext) -> bytes:
        self._count += 1
        return self._said

    def _counted(self, reason: bytes) -> bytes:
        statistics = message_class("ModelStatisticsResponse").FromString(reason)
        for model in statistics.model_stats:
            model.inference_count = model.execution_count = self._count
            for phase in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
                duration = getattr(model.inference_stats, phase)
                duration.count, duration.ns = self._count, _NS * self._count
        return statistics.SerializeToString()


@contextmanager
def echoing(running: Running, model: str, loop: str) -> Iterator[Running]:
    """The echo in front of a server that runs, in a process of its own, on an event loop of "asyncio" or "uvloop"."""
    port = free_port()
    command = [sys.executable, __file__, str(port), str(running.ports.grpc), model, loop]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if process.stdout is None or not process.stdout.readline():
            raise RuntimeError("the echo server ended before it listened")
        yield replace(running, name="echo", ports=replace(running.ports, grpc=port), process=process)
    finally:
        process.terminate()
        process.wait()


def add_sub_request(model: str) -> bytes:
    """A request with two FP32[1,16] inputs."""
    request = message_class("ModelInferRequest")(model_name=model)
    for name in ("INPUT0", "INPUT1"):
        request.inputs.add(name=name, datatype="FP32", shape=[1, 16])
        request.raw_input_contents.append(np.ones((1, 16), np.float32).tobytes())
    return request.SerializeToString()


async def serve(port: int, behind: int, model: str) -> None:
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{behind}")
    answer = await channel.unary_unary(_INFER)(add_sub_request(model))
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Echo(channel, answer),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    print("listening", flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the parent process closes the pipe


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("behind", type=int)
    parser.add_argument("model")
    parser.add_argument("loop", choices=("asyncio", "uvloop"))
    arguments = parser.parse_args()
    run = asyncio.run if arguments.loop == "asyncio" else uvloop.run
    run(serve(arguments.port, arguments.behind, arguments.model))
