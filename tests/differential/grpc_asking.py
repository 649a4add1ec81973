"""gRPC requests as bytes through plain stubs, so that malformed ones can be sent too, and answers as JSON."""

import socket
from collections.abc import Iterable, Sequence
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message
from tritonclient.grpc import service_pb2

from .answers import GONE, Answer, Case, Ports
from .http_asking import PATIENCE

SERVICE = "inference.GRPCInferenceService"
Metadata = Sequence[tuple[str, str | bytes]]

_OPTIONS = (("grpc.enable_retries", 0), ("grpc.max_receive_message_length", -1))


def grpc_case(
    key: str,
    method: str,
    message: Message | bytes | None = None,
    metadata: Metadata = (),
    any_value: tuple[str, ...] = (),
    compression: grpc.Compression | None = None,
    timeout: float = PATIENCE,
) -> Case:
    """A unary call; `method` may name another service as `package.Service/Method`, `message` None is an empty one."""
    path = f"/{method}" if "/" in method else f"/{SERVICE}/{method}"
    content = _content(message)

    def ask(ports: Ports) -> Answer:
        with _channel(ports) as channel:
            call = channel.unary_unary(path)
            try:
                answered = call(content, timeout=timeout, metadata=metadata, compression=compression)
            except grpc.RpcError as error:
                return _refused(error, ports)
            return Answer("OK", {}, _document(f"{path.rpartition('/')[2]}Response", answered))

    return Case(key, ask, any_value)


def stream_case(
    key: str, messages: Iterable[Message | bytes], metadata: Metadata = (), any_value: tuple[str, ...] = ()
) -> Case:
    """A ModelStreamInfer call of these messages; its document is what came, and its status how it ended."""
    contents = [_content(message) for message in messages]

    def ask(ports: Ports) -> Answer:
        came: list[Any] = []
        with _channel(ports) as channel:
            call = channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
            try:
                for answered in call(iter(contents), timeout=PATIENCE, metadata=metadata):
                    came.append(_document("ModelStreamInferResponse", answered))
            except grpc.RpcError as error:
                refused = _refused(error, ports)
                return Answer(refused.status, {}, {"came": came} | refused.document)
        return Answer("OK", {}, {"came": came})

    return Case(key, ask, any_value)


def _channel(ports: Ports) -> grpc.Channel:
    return grpc.insecure_channel(f"127.0.0.1:{ports.grpc}", options=_OPTIONS)


def _content(message: Message | bytes | None) -> bytes:
    if message is None:
        return b""
    return message if isinstance(message, bytes) else message.SerializeToString()


def _refused(error: grpc.RpcError, ports: Ports) -> Answer:
    if error.code() is grpc.StatusCode.UNAVAILABLE and _is_gone(ports):
        return Answer(GONE)
    return Answer(error.code().name, {}, {"error": error.details()})


def _is_gone(ports: Ports) -> bool:
    try:
        socket.create_connection(("127.0.0.1", ports.grpc), timeout=PATIENCE).close()
    except ConnectionRefusedError:
        return True
    return False


def _document(name: str, content: bytes) -> Any:
    """A message as JSON: `name` is its type; one that the client has no type for stays bytes."""
    kind = getattr(service_pb2, name, None)
    if kind is None:
        return {"bytes": content.hex()}
    message = kind()
    try:
        message.ParseFromString(content)
    except DecodeError as error:
        return {"unreadable": str(error)}
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
