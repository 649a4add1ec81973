"""The RPCs without a transport, as a plugin has them that serves gRPC by another server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import naiad_grpc
from naiad import Server
from naiad_grpc.messages import message_class
from naiad_kit.frontends.embedding import EmbeddedGrpc, Rpc, StatusError, StreamRpc
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import running

SERVICE = "/inference.GRPCInferenceService/"


class EmbeddedCall:
    """A call as another server would describe it."""

    def __init__(self, *metadata: tuple[str, str]) -> None:
        self.metadata = metadata

    def time_remaining(self) -> float | None:
        return None

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self.metadata


def rpc_of(server: Server, name: str) -> Any:
    frontend = server.plugins.frontends()["grpc"]
    assert isinstance(frontend, EmbeddedGrpc)
    return next(each for each in frontend.rpcs(server) if each.path == SERVICE + name)


def infer_message(model: str) -> bytes:
    message = message_class("ModelInferRequest")(model_name=model, id="one")
    message.inputs.add(name="x", datatype="FP32", shape=[1, 1]).contents.fp32_contents.append(2)
    return bytes(message.SerializeToString())


async def test_a_message_is_answered_without_a_listener(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend, naiad_grpc, allow_grpc=False) as server:
        rpc = rpc_of(server, "ModelReady")
        assert isinstance(rpc, Rpc)
        answer = await rpc.answer(message_class("ModelReadyRequest")(name="m").SerializeToString(), EmbeddedCall())

    assert message_class("ModelReadyResponse").FromString(answer).ready


async def test_an_error_is_a_status_with_its_message(tmp_path: Path) -> None:
    async with running(tmp_path, naiad_grpc, allow_grpc=False) as server:
        with pytest.raises(StatusError, match="unknown model: 'nope'") as raised:
            await rpc_of(server, "ModelInfer").answer(infer_message("nope"), EmbeddedCall())

    assert raised.value.code == 5


async def test_a_restricted_rpc_needs_its_header(tmp_path: Path) -> None:
    options = {"allow_grpc": False, "grpc_restricted_protocol": ("health:key=secret",)}
    async with running(tmp_path, naiad_grpc, **options) as server:
        rpc = rpc_of(server, "ServerLive")
        with pytest.raises(StatusError, match="restricted") as raised:
            await rpc.answer(b"", EmbeddedCall())
        answer = await rpc.answer(b"", EmbeddedCall(("triton-grpc-protocol-key", "secret")))

    assert raised.value.code == 14
    assert message_class("ServerLiveResponse").FromString(answer).live


async def test_a_stream_answers_each_message(tmp_path: Path) -> None:
    async def messages() -> AsyncIterator[bytes]:
        yield infer_message("nope")
        yield infer_message("nope")

    async with running(tmp_path, naiad_grpc, allow_grpc=False) as server:
        rpc = rpc_of(server, "ModelStreamInfer")
        assert isinstance(rpc, StreamRpc)
        answers = [answer async for answer in rpc.answer(messages(), EmbeddedCall())]

    texts = [message_class("ModelStreamInferResponse").FromString(answer).error_message for answer in answers]
    assert ["unknown model" in text for text in texts] == [True, True]
