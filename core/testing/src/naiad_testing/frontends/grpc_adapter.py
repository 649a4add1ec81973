"""The adapter of the frontend suite for gRPC: Triton's client library, and its stubs for streams."""

from collections.abc import Generator, Mapping, Sequence
from queue import Queue
from typing import Any, ClassVar

import numpy as np

from naiad_testing.frontends.adapter import Credentials, Stream
from naiad_testing.frontends.calls import Answer, Call, RefusedError
from naiad_testing.frontends.library import PATIENCE, LibraryAdapter, answer_of, arguments_of, refused


class GrpcAdapter(LibraryAdapter):
    """The protocol over gRPC."""

    module = "tritonclient.grpc"
    frontend = "grpc"
    restriction_option = "grpc-restricted-protocol"
    restriction_prefix = "triton-grpc-protocol-"
    statuses: ClassVar[Mapping[str, str]] = {
        "NaiadError": "UNKNOWN",
        "InvalidArgumentError": "INVALID_ARGUMENT",
        "ConfigError": "INVALID_ARGUMENT",
        "UsageError": "INVALID_ARGUMENT",
        "TooLargeError": "INVALID_ARGUMENT",
        "NotFoundError": "NOT_FOUND",
        "AlreadyExistsError": "ALREADY_EXISTS",
        "UnavailableError": "UNAVAILABLE",
        "ModelNotReadyError": "UNAVAILABLE",
        "QueueFullError": "UNAVAILABLE",
        "QueueTimeoutError": "UNAVAILABLE",
        "CallRingError": "UNAVAILABLE",
        "ShuttingDownError": "UNAVAILABLE",
        "DeadlineExceededError": "DEADLINE_EXCEEDED",
        "RequestCancelledError": "CANCELLED",
        "UnsupportedError": "UNIMPLEMENTED",
        "UnknownError": "UNKNOWN",
        "InternalError": "INTERNAL",
        "ModelFailedError": "INTERNAL",
        "WorkerDiedError": "INTERNAL",
        "PluginError": "INTERNAL",
    }

    @classmethod
    def address_of(cls, frontend: Any) -> str:
        """The target."""
        return str(frontend.target)

    def __init__(self, address: str, credentials: Credentials | None = None, asynchronous: bool = False) -> None:
        super().__init__(address, asynchronous)
        self._options: dict[str, Any] = {}
        if credentials is not None:
            files = {
                "root_certificates": credentials.root,
                "private_key": credentials.key,
                "certificate_chain": credentials.cert,
            }
            self._options = {"ssl": True, **{name: path and str(path) for name, path in files.items()}}
            self._options["channel_args"] = [("grpc.ssl_target_name_override", "localhost")]
        self._client = self.open_client(**self._options)
        self._plain: Any = None

    def infer(self, call: Call) -> Answer:
        more = {"headers": dict(call.headers), "client_timeout": call.limit or PATIENCE, **arguments_of(call)}
        result = self.call(self._client, "infer", call.model, **self.tensors(call), **more)
        return answer_of(result, plain(result.get_response()), call)

    def begin(self, call: Call) -> "GrpcPending":
        return GrpcPending(self._synchronous(), self.tensors(call), call)

    def stream(self, call: Call) -> Stream:
        import grpc
        from tritonclient.grpc import service_pb2_grpc

        # windows that do not grow: what is under way is bounded then
        channel = grpc.insecure_channel(self.address, [("grpc.http2.bdp_probe", 0)])
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        return GrpcStream(channel, stub.ModelStreamInfer(iter([_message(call)]), metadata=tuple(call.headers.items())))

    def live(self, headers: Mapping[str, str] | None = None) -> bool:
        return bool(self._ask("is_server_live", headers=dict(headers or {})))

    def ready(self) -> bool:
        return bool(self._ask("is_server_ready"))

    def model_ready(self, name: str, version: str = "") -> bool:
        try:
            return bool(self._ask("is_model_ready", name, version))
        except RefusedError as error:
            if error.status in (self.statuses["NotFoundError"], self.statuses["UnavailableError"]):
                return False
            raise

    def server_metadata(self, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        return dict(plain(self._ask("get_server_metadata", headers=dict(headers or {}))))

    def model_metadata(self, name: str, version: str = "") -> dict[str, Any]:
        return dict(plain(self._ask("get_model_metadata", name, version)))

    def model_config(self, name: str, version: str = "") -> dict[str, Any]:
        return dict(plain(self._ask("get_model_config", name, version))["config"])

    def statistics(self, name: str = "", version: str = "") -> list[dict[str, Any]]:
        return list(plain(self._ask("get_inference_statistics", name, version))["model_stats"])

    def index(self) -> list[dict[str, str]]:
        models = plain(self._ask("get_model_repository_index"))["models"]
        return [{name: value for name, value in each.items() if value} for each in models]

    def load(self, name: str, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        self._ask("load_model", name, config=config, files=files and dict(files))

    def unload(self, name: str, dependents: bool = False) -> None:
        self._ask("unload_model", name, unload_dependents=dependents)

    def trace_settings(self, model: str = "") -> dict[str, list[str]]:
        return _trace(self._ask("get_trace_settings", model or None))

    def set_trace(self, changes: Mapping[str, str | Sequence[str] | None], model: str = "") -> dict[str, list[str]]:
        return _trace(self._ask("update_trace_settings", model or None, dict(changes)))

    def log_settings(self) -> dict[str, Any]:
        return _log(self._ask("get_log_settings"))

    def set_log(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        return _log(self._ask("update_log_settings", dict(changes)))

    def register_system(self, name: str, key: str, byte_size: int, offset: int = 0) -> None:
        self._ask("register_system_shared_memory", name, key, byte_size, offset=offset)

    def register_cuda(self, name: str, handle: bytes, device: int, byte_size: int) -> None:
        self._ask("register_cuda_shared_memory", name, handle, device, byte_size)

    def unregister(self, kind: str, name: str = "") -> None:
        self._ask(f"unregister_{kind}_shared_memory", name)

    def regions(self, kind: str, name: str = "") -> dict[str, dict[str, Any]]:
        return dict(plain(self._ask(f"get_{kind}_shared_memory_status", name))["regions"])

    def _ask(self, method: str, *arguments: Any, **named: Any) -> Any:
        return self.call(self._client, method, *arguments, client_timeout=PATIENCE, **named)

    def _synchronous(self) -> Any:
        """A client that calls back."""
        if self._plain is None:
            import tritonclient.grpc

            self._plain = tritonclient.grpc.InferenceServerClient(self.address, **self._options)
        return self._plain

    def close(self) -> None:
        super().close()
        if self._plain is not None:
            self._plain.close()


class GrpcPending:
    """A request of the client with callbacks."""

    def __init__(self, client: Any, tensors: Mapping[str, Any], call: Call) -> None:
        self._call = call
        self._outcomes: Queue[Any] = Queue()
        more = {"headers": dict(call.headers), "client_timeout": call.limit or PATIENCE, **arguments_of(call)}
        self._context = client.async_infer(call.model, callback=self._came, **tensors, **more)

    def result(self) -> Answer:
        """Wait for the answer. Raises RefusedError."""
        result, error = self._outcomes.get(timeout=PATIENCE)
        if error is not None:
            raise refused(error)
        return answer_of(result, plain(result.get_response()), self._call)

    def cancel(self) -> None:
        """Cancel the call."""
        self._context.cancel()

    def _came(self, result: Any, error: Any) -> None:
        self._outcomes.put((result, error))


class GrpcStream:
    """The responses of ModelStreamInfer to one request, which are taken from the connection one by one."""

    def __init__(self, channel: Any, responses: Any) -> None:
        self._channel = channel
        self._responses = responses

    def __iter__(self) -> Generator[Answer, None, None]:
        """The responses. Raises RefusedError."""
        from tritonclient.grpc import InferResult

        try:
            for each in self._responses:
                if each.error_message:
                    raise RefusedError("", each.error_message)
                yield answer_of(InferResult(each.infer_response), plain(each.infer_response), Call(""))
        finally:
            self.close()

    def close(self) -> None:
        """Cancel the call."""
        self._responses.cancel()
        self._channel.close()


def plain(message: Any) -> Any:
    """A message as a dict of plain values, with the fields that are not set."""
    document: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            document[field.name] = {key: _value(each) for key, each in value.items()}
        elif field.is_repeated:
            document[field.name] = [_value(each, field) for each in value]
        elif field.message_type is None or message.HasField(field.name):
            document[field.name] = _value(value, field)
    return document


def _value(value: Any, field: Any = None) -> Any:
    if field is not None and field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    if not hasattr(value, "DESCRIPTOR"):
        return value
    oneof = value.DESCRIPTOR.oneofs_by_name.get("parameter_choice")
    return plain(value) if oneof is None else getattr(value, value.WhichOneof("parameter_choice"))


def _trace(response: Any) -> dict[str, list[str]]:
    return {name: list(each.value) for name, each in response.settings.items()}


def _log(response: Any) -> dict[str, Any]:
    return dict(plain(response)["settings"])


def _message(call: Call) -> Any:
    from tritonclient.grpc import service_pb2

    message = service_pb2.ModelInferRequest(model_name=call.model, id=call.id)
    for each in call.inputs:
        message.inputs.add(name=each.name, datatype=each.wire_datatype, shape=each.wire_shape)
        assert each.array is not None, "a stream takes arrays"
        strings = (
            b"".join(len(item).to_bytes(4, "little") + item for item in each.array.ravel())
            if each.array.dtype == object
            else b""
        )
        message.raw_input_contents.append(strings or np.ascontiguousarray(each.array).tobytes())
    for name, value in call.parameters.items():
        kinds = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}
        setattr(message.parameters[name], kinds[type(value)], value)
    return message
