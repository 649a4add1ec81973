"""Mixed traffic over HTTP and gRPC, from clients of which a third leaves in the middle; prints what it did as JSON."""

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic

import grpc

from grpc_client import add_sub_request, stream_request

_SERVICE = "/inference.GRPCInferenceService/"
_CLIENTS = 32
_LEAVES = 1 / 3


class Traffic:
    """One server's clients. `random` decides what each asks next and whether it leaves before the answer."""

    def __init__(self, http: int, grpc_port: int, seed: int) -> None:
        self._http = http
        self._target = f"127.0.0.1:{grpc_port}"
        self._random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self._kinds: Mapping[str, Callable[[bool], Awaitable[None]]] = {
            "binary": lambda leaves: self._post("add_sub/infer", *_binary("add_sub", 16), leaves),
            "json": lambda leaves: self._post("add_sub/infer", *_json(), leaves),
            "large": lambda leaves: self._post("identity/infer", *_binary("identity", 50_000), leaves),
            "events": lambda leaves: self._post("stream/generate_stream", *_stream(), leaves),
            "wrong": lambda leaves: self._post("add_sub/infer", b"{", {}, leaves),
            "grpc": self._infer,
            "grpc stream": self._stream,
        }

    async def run(self, seconds: float) -> None:
        """Ask for so many seconds."""
        until = monotonic() + seconds
        await asyncio.gather(*(self._client(until) for _ in range(_CLIENTS)))

    async def _client(self, until: float) -> None:
        while monotonic() < until:
            self.done[await self.request()] += 1

    async def request(self) -> str:
        """One request of a random kind; the kind, and what became of it unless it was answered."""
        kind = self._random.choice(list(self._kinds))
        leaves = self._random.random() < _LEAVES
        try:
            await self._kinds[kind](leaves)
        except (OSError, EOFError, grpc.RpcError) as error:
            return f"{kind}: {type(error).__name__}"
        return f"{kind}, left" if leaves else kind

    async def _post(self, path: str, body: bytes, headers: Mapping[str, str], leaves: bool) -> None:
        """A request on a connection of its own; who leaves does so within the request or within the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._http)
        try:
            lines = {"Host": "localhost", "Content-Length": str(len(body)), "Connection": "close", **headers}
            head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            whole = f"POST /v2/models/{path} HTTP/1.1\r\n{head}\r\n".encode() + body
            if leaves and self._random.random() < 0.5:
                writer.write(whole[: self._random.randrange(len(whole))])
                await writer.drain()
                return
            writer.write(whole)
            await writer.drain()
            if leaves:
                await reader.read(self._random.choice((1, 100, 10_000)))
                return
            if not (await reader.read()).startswith(b"HTTP/1.1 "):
                raise EOFError("no answer")
        finally:
            if leaves:
                writer.transport.abort()
            writer.close()

    async def _infer(self, leaves: bool) -> None:
        async with grpc.aio.insecure_channel(self._target) as channel:
            call = channel.unary_unary(_SERVICE + "ModelInfer")(add_sub_request("add_sub"))
            if leaves:
                await asyncio.sleep(self._random.random() / 1000)
                call.cancel()
                return
            await call

    async def _stream(self, leaves: bool) -> None:
        async with grpc.aio.insecure_channel(self._target) as channel:
            call = channel.stream_stream(_SERVICE + "ModelStreamInfer")()
            await call.write(stream_request(100))
            await call.write(add_sub_request("add_sub"))
            if leaves:
                await call.read()
                call.cancel()
                return
            await call.done_writing()
            while await call.read() is not grpc.aio.EOF:
                pass


def _binary(model: str, elements: int) -> tuple[bytes, Mapping[str, str]]:
    shape = [1, elements] if model == "add_sub" else [elements]
    names = ("INPUT0", "INPUT1") if model == "add_sub" else ("INPUT0",)
    inputs = [
        {"name": name, "datatype": "FP32", "shape": shape, "parameters": {"binary_data_size": 4 * elements}}
        for name in names
    ]
    text = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    return text + bytes(4 * elements) * len(names), {"Inference-Header-Content-Length": str(len(text))}


def _json() -> tuple[bytes, Mapping[str, str]]:
    values = list(range(16))
    inputs = [{"name": name, "datatype": "FP32", "shape": [1, 16], "data": values} for name in ("INPUT0", "INPUT1")]
    return json.dumps({"inputs": inputs}).encode(), {}


def _stream() -> tuple[bytes, Mapping[str, str]]:
    return json.dumps({"COUNT": 100, "SIZE": 1024}).encode(), {}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("http", type=int)
    parser.add_argument("grpc", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    traffic = Traffic(arguments.http, arguments.grpc, arguments.seed)
    asyncio.run(traffic.run(arguments.seconds))
    print(json.dumps(traffic.done))
