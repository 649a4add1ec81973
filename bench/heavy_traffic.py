"""Mixed traffic with messages of 1 to 30 MB, errors of every kind, deadlines, failing models, reloads and scrapes."""

import asyncio
import gzip
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from math import exp, log
from time import monotonic

import grpc

from mixed_traffic import Traffic
from naiad_grpc.messages import message_class
from servers import Running

_SERVICE = "/inference.GRPCInferenceService/"
_OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
_SMALL_CLIENTS = 16
_LARGE_CLIENTS = 4
_LEAST, _MOST = 1e6, 30e6
_ROUND = 10.0
_QUIET = 3.5
"""Longer than the server takes to notice that it is idle and to give free pages back."""
_SLICE = 1 << 20
_NO_FIELDS: Mapping[str, str] = {}


class HeavyTraffic:
    """One server's clients, which pause every ten seconds so that only what the server keeps is measured."""

    def __init__(self, running: Running, seed: int) -> None:
        self._running = running
        self._random = random.Random(seed)
        self._small = Traffic(running.ports.http, running.ports.grpc, seed)
        self._open = asyncio.Event()
        self._quiet = asyncio.Event()
        self._in_flight = 0
        self.done: Counter[str] = Counter()
        self._kinds: Mapping[str, Callable[[], Awaitable[str]]] = {
            "large": lambda: self._post("identity", self._size()),
            "large, left": lambda: self._post("identity", self._size(), leaves=True),
            "large chunks, left": lambda: self._post("identity", self._size(), leaves=True, chunked=True),
            "compressed": lambda: self._post("identity", 4_000_000, compressed=True),
            "unknown model": lambda: self._post("missing", self._size() / 3),
            "wrong name": lambda: self._post("identity", self._size() / 3, name="WRONG"),
            "model fails": lambda: self._post("raises", self._size() / 3),
            "failing call": lambda: self._post("calls", self._size() / 3),
            "deadline": lambda: self._post("slow", self._size() / 3, fields={"Request-Timeout": "0.05"}),
            "grpc": lambda: self._call("identity", self._size()),
            "grpc, left": lambda: self._call("identity", self._size(), leaves=True),
            "grpc stream": lambda: self._call("identity", self._size(), streams=True),
            "grpc stream, left": lambda: self._call("identity", self._size(), streams=True, leaves=True),
            "grpc stream error": lambda: self._call("missing", self._size() / 3, streams=True),
            "grpc unknown model": lambda: self._call("missing", self._size() / 3),
            "grpc wrong name": lambda: self._call("identity", self._size() / 3, name="WRONG"),
            "grpc model fails": lambda: self._call("raises", self._size() / 3),
            "grpc deadline": lambda: self._call("slow", self._size() / 3, seconds=0.05),
        }

    async def run(self, seconds: float) -> list[tuple[float, float]]:
        """Traffic for so many seconds; the moments (s) and the resident memory (MB) of each pause."""
        until = monotonic() + seconds
        self._open.set()
        samples: list[tuple[float, float]] = []
        async with asyncio.TaskGroup() as group:
            for _ in range(_SMALL_CLIENTS):
                group.create_task(self._client(until, self._small_request))
            for _ in range(_LARGE_CLIENTS):
                group.create_task(self._client(until, self._large_request))
            group.create_task(self._each_second(until))
            group.create_task(self._sample(until, samples))
        return samples

    async def _client(self, until: float, request: Callable[[], Awaitable[str]]) -> None:
        while monotonic() < until:
            await self._open.wait()
            self._in_flight += 1
            self._quiet.clear()
            self.done[await request()] += 1
            self._in_flight -= 1
            if not self._in_flight:
                self._quiet.set()

    async def _sample(self, until: float, samples: list[tuple[float, float]]) -> None:
        """Close the gate every ten seconds, wait until nothing is in flight and a little more, and look."""
        while monotonic() + _ROUND + _QUIET < until:
            await asyncio.sleep(_ROUND)
            self._open.clear()
            await self._quiet.wait()
            await asyncio.sleep(_QUIET)
            samples.append((monotonic(), self._running.resident_megabytes()))
            self._open.set()

    async def _small_request(self) -> str:
        return await self._small.request()

    async def _large_request(self) -> str:
        kind = self._random.choice(list(self._kinds))
        try:
            return f"{kind}: {await asyncio.wait_for(self._kinds[kind](), 60)}"
        except (OSError, EOFError, TimeoutError) as error:
            return f"{kind}: {type(error).__name__}"

    async def _each_second(self, until: float) -> None:
        """A reload with changed content, a scrape and the statistics, once a second."""
        number = 0
        while monotonic() < until:
            number += 1
            config = {"parameters": {"round": {"string_value": str(number)}}, **RELOADED}
            body = json.dumps({"parameters": {"config": json.dumps(config)}}).encode()
            reloaded = await self._ask(self._running.ports.http, "POST", "/v2/repository/models/add_sub_2/load", body)
            self.done[f"reload: {reloaded}"] += 1
            self.done[f"scrape: {await self._ask(self._running.ports.metrics, 'GET', '/metrics')}"] += 1
            self.done[f"statistics: {await self._ask(self._running.ports.http, 'GET', '/v2/models/stats')}"] += 1
            await asyncio.sleep(1)
            await self._open.wait()

    async def _ask(
        self, port: int, method: str, path: str, body: bytes = b"", fields: Mapping[str, str] = _NO_FIELDS
    ) -> str:
        """A request on a connection of its own; its status."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            lines = {"Host": "soak", "Content-Length": str(len(body)), "Connection": "close", **fields}
            writer.write(_head(method, path, lines) + body)
            return (await self._read(reader))[9:12].decode()
        finally:
            writer.close()

    async def _post(
        self,
        model: str,
        size: float,
        *,
        name: str = "INPUT0",
        fields: Mapping[str, str] = _NO_FIELDS,
        leaves: bool = False,
        chunked: bool = False,
        compressed: bool = False,
    ) -> str:
        """An inference over HTTP with so many bytes. Who leaves does so within the head, the body or the answer."""
        elements = int(size) // 4
        body, length = _binary_body(name, elements)
        body = gzip.compress(body, 1) if compressed else body
        lines = {"Host": "soak", "Connection": "close", "Inference-Header-Content-Length": str(length), **fields}
        lines |= {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(len(body))}
        lines |= {"Content-Encoding": "gzip"} if compressed else {}
        whole = _head("POST", f"/v2/models/{model}/infer", lines)
        whole += _chunks(body) if chunked else body
        stop = self._random.choice((50, self._random.randrange(len(whole)), len(whole))) if leaves else len(whole)
        reader, writer = await asyncio.open_connection("127.0.0.1", self._running.ports.http)
        try:
            for start in range(0, stop, _SLICE):
                writer.write(whole[start : min(stop, start + _SLICE)])
                await writer.drain()
            if leaves:
                await asyncio.sleep(self._random.random() / 20)
                return "left"
            return (await self._read(reader))[9:12].decode()
        finally:
            if leaves:
                writer.transport.abort()
            writer.close()

    async def _call(
        self,
        model: str,
        size: float,
        *,
        name: str = "INPUT0",
        seconds: float = 60.0,
        streams: bool = False,
        leaves: bool = False,
    ) -> str:
        """An inference over gRPC with so many bytes; the name of its status."""
        content = _grpc_request(model, name, int(size) // 4)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self._running.ports.grpc}", options=_OPTIONS) as channel:
            try:
                if streams:
                    return await self._stream(channel, content, leaves)
                call = channel.unary_unary(_SERVICE + "ModelInfer")(content, timeout=seconds)
                if leaves:
                    await asyncio.sleep(self._random.random() / 10)
                    call.cancel()
                    return "left"
                await call
            except grpc.RpcError as error:
                return str(error.code().name)
        return "OK"

    async def _stream(self, channel: grpc.aio.Channel, content: bytes, leaves: bool) -> str:
        call = channel.stream_stream(_SERVICE + "ModelStreamInfer")()
        for _ in range(2):
            await call.write(content)
            if leaves:
                await asyncio.sleep(self._random.random() / 10)
                call.cancel()
                return "left"
            await call.read()
        await call.done_writing()
        while await call.read() is not grpc.aio.EOF:
            pass
        return "OK"

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        """The start of the answer, once all of it has come."""
        top = await reader.read(_SLICE)
        while await reader.read(_SLICE):
            pass
        if not top:
            raise EOFError("no answer")
        return top

    def _size(self) -> float:
        """So many bytes: each magnitude between 1 and 30 MB is as likely as any other."""
        return exp(self._random.uniform(log(_LEAST), log(_MOST)))


RELOADED = {
    "backend": "python",
    "max_batch_size": 64,
    "input": [{"name": name, "data_type": "TYPE_FP32", "dims": [16]} for name in ("INPUT0", "INPUT1")],
    "output": [{"name": name, "data_type": "TYPE_FP32", "dims": [16]} for name in ("OUTPUT0", "OUTPUT1")],
    "instance_group": [{"kind": "KIND_CPU"}],
}
"""The configuration of the model that is loaded anew each second."""


def _head(method: str, path: str, fields: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode()


def _chunks(body: bytes) -> bytes:
    pieces = (body[start : start + _SLICE] for start in range(0, len(body), _SLICE))
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def _binary_body(name: str, elements: int) -> tuple[bytes, int]:
    """An infer request with one binary FP32 tensor of zeros, and the length of its JSON."""
    parameters = {"binary_data_size": 4 * elements}
    tensor = {"name": name, "datatype": "FP32", "shape": [elements], "parameters": parameters}
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return text + bytes(4 * elements), len(text)


def _grpc_request(model: str, name: str, elements: int) -> bytes:
    request = message_class("ModelInferRequest")(model_name=model)
    request.inputs.add(name=name, datatype="FP32", shape=[elements])
    request.raw_input_contents.append(bytes(4 * elements))
    return bytes(request.SerializeToString())
