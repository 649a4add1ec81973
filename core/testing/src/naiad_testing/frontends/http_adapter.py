"""The adapter of the frontend suite for HTTP: Triton's client library, and plain sockets for streams."""

import http.client
import importlib
import json
import ssl
from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from naiad_testing.frontends.adapter import Credentials, Stream
from naiad_testing.frontends.calls import Answer, Call, RefusedError
from naiad_testing.frontends.library import PATIENCE, LibraryAdapter, answer_of, arguments_of, as_lists


class HttpAdapter(LibraryAdapter):
    """The protocol over HTTP, with streams by the generate extension, whose tensors have one dimension."""

    module = "tritonclient.http"
    frontend = "http"
    restriction_option = "http-restricted-api"
    statuses: ClassVar[Mapping[str, str]] = {
        "NaiadError": "500",
        "InvalidArgumentError": "400",
        "ConfigError": "400",
        "UsageError": "400",
        "TooLargeError": "400",
        "NotFoundError": "404",
        "AlreadyExistsError": "400",
        "UnavailableError": "503",
        "ModelNotReadyError": "503",
        "QueueFullError": "503",
        "QueueTimeoutError": "503",
        "CallRingError": "503",
        "ShuttingDownError": "503",
        "DeadlineExceededError": "504",
        "RequestCancelledError": "499",
        "UnsupportedError": "501",
        "UnknownError": "500",
        "InternalError": "500",
        "ModelFailedError": "500",
        "WorkerDiedError": "500",
        "PluginError": "500",
    }

    @classmethod
    def address_of(cls, frontend: Any) -> str:
        """The port on this machine."""
        return f"localhost:{frontend.port}"

    def __init__(self, address: str, credentials: Credentials | None = None, asynchronous: bool = False) -> None:
        super().__init__(address, asynchronous)
        self._tls = None if credentials is None else _context(credentials)
        self._options: dict[str, Any] = {}
        if credentials is not None and asynchronous:
            self._options = {"ssl": True, "ssl_context": self._tls}
        elif credentials is not None:
            files = {"ca_certs": credentials.root, "certfile": credentials.cert, "keyfile": credentials.key}
            paths = {name: str(path) for name, path in files.items() if path is not None}
            tls = importlib.import_module("gevent.ssl")
            self._options = {
                "ssl": True,
                "ssl_options": paths,
                "ssl_context_factory": tls.create_default_context,
            }
        self._client = self._opened(PATIENCE)

    def infer(self, call: Call) -> Answer:
        client = self._client if call.limit is None else self._opened(call.limit)
        more = {"headers": dict(call.headers) or None, **arguments_of(call)}
        result = self.call(client, "infer", call.model, **self.tensors(call), **more)
        return answer_of(result, result.get_response(), call)

    def begin(self, call: Call) -> "HttpPending":
        more = {name: value for name, value in arguments_of(call).items() if name != "model_version"}
        body, length = self._library.InferenceServerClient.generate_request_body(**self.tensors(call), **more)
        headers = {"Inference-Header-Content-Length": str(length)} if length is not None else {}
        path = f"/v2/models/{call.model}" + (f"/versions/{call.version}" if call.version else "") + "/infer"
        return HttpPending(self._sent(path, body, {**headers, **call.headers}), self._library, call)

    def stream(self, call: Call) -> Stream:
        members: dict[str, Any] = {"id": call.id} if call.id else {}
        for each in call.inputs:
            assert each.array is not None, "a stream takes arrays"
            members[each.name] = [
                value.decode() if isinstance(value, bytes) else value for value in each.array.tolist()
            ]
        body = json.dumps(members | dict(call.parameters)).encode()
        return HttpStream(self._sent(f"/v2/models/{call.model}/generate_stream", body, dict(call.headers)))

    def live(self, headers: Mapping[str, str] | None = None) -> bool:
        return bool(self.call(self._client, "is_server_live", headers=dict(headers or {})))

    def ready(self) -> bool:
        return bool(self.call(self._client, "is_server_ready"))

    def model_ready(self, name: str, version: str = "") -> bool:
        return bool(self.call(self._client, "is_model_ready", name, version))

    def server_metadata(self, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        return dict(self.call(self._client, "get_server_metadata", headers=dict(headers or {})))

    def model_metadata(self, name: str, version: str = "") -> dict[str, Any]:
        return dict(self.call(self._client, "get_model_metadata", name, version))

    def model_config(self, name: str, version: str = "") -> dict[str, Any]:
        return dict(self.call(self._client, "get_model_config", name, version))

    def statistics(self, name: str = "", version: str = "") -> list[dict[str, Any]]:
        return list(self.call(self._client, "get_inference_statistics", name, version)["model_stats"])

    def index(self) -> list[dict[str, str]]:
        return list(self.call(self._client, "get_model_repository_index"))

    def load(self, name: str, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        self.call(self._client, "load_model", name, config=config, files=files and dict(files))

    def unload(self, name: str, dependents: bool = False) -> None:
        self.call(self._client, "unload_model", name, unload_dependents=dependents)

    def trace_settings(self, model: str = "") -> dict[str, list[str]]:
        return as_lists(self.call(self._client, "get_trace_settings", model or None))

    def set_trace(self, changes: Mapping[str, str | Sequence[str] | None], model: str = "") -> dict[str, list[str]]:
        return as_lists(self.call(self._client, "update_trace_settings", model or None, dict(changes)))

    def log_settings(self) -> dict[str, Any]:
        return dict(self.call(self._client, "get_log_settings"))

    def set_log(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self.call(self._client, "update_log_settings", dict(changes)))

    def register_system(self, name: str, key: str, byte_size: int, offset: int = 0) -> None:
        self.call(self._client, "register_system_shared_memory", name, key, byte_size, offset=offset)

    def register_cuda(self, name: str, handle: bytes, device: int, byte_size: int) -> None:
        self.call(self._client, "register_cuda_shared_memory", name, handle, device, byte_size)

    def unregister(self, kind: str, name: str = "") -> None:
        self.call(self._client, f"unregister_{kind}_shared_memory", name)

    def regions(self, kind: str, name: str = "") -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in self.call(self._client, f"get_{kind}_shared_memory_status", name)}

    @property
    def transport_errors(self) -> tuple[type[Exception], ...]:
        """Those of the libraries below Triton's."""
        kinds = (
            ("builtins", "OSError"),
            ("aiohttp", "ClientError"),
            ("geventhttpclient.response", "HTTPConnectionClosed"),
        )
        return tuple(getattr(importlib.import_module(module), name) for module, name in kinds)

    def _opened(self, limit: float) -> Any:
        limits = {"network_timeout": limit, "connection_timeout": limit} if self._runner is None else {}
        return self.open_client(**(limits or {"conn_timeout": limit}), **self._options)

    def _sent(self, path: str, body: bytes, headers: Mapping[str, str]) -> http.client.HTTPConnection:
        if self._tls is None:
            connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        else:
            connection = http.client.HTTPSConnection(self.address, timeout=PATIENCE, context=self._tls)
        connection.request("POST", path, body, dict(headers))
        return connection


class HttpPending:
    """A request on a connection of its own, whose answer is not read yet."""

    def __init__(self, connection: http.client.HTTPConnection, library: Any, call: Call) -> None:
        self._connection = connection
        self._library = library
        self._call = call

    def result(self) -> Answer:
        """Read the answer. Raises RefusedError."""
        try:
            response = self._connection.getresponse()
            body = _checked(response)
            length = response.getheader("Inference-Header-Content-Length")
        finally:
            self._connection.close()
        parse = self._library.InferenceServerClient.parse_response_body
        result = parse(body, header_length=None if length is None else int(length))
        return answer_of(result, result.get_response(), self._call)

    def cancel(self) -> None:
        """Close the connection."""
        self._connection.close()


class HttpStream:
    """The events of `generate_stream`."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection

    def __iter__(self) -> Generator[Answer, None, None]:
        """The responses, each read when it is taken. Raises RefusedError."""
        response = self._connection.getresponse()
        try:
            status = "" if response.status == http.HTTPStatus.OK else str(response.status)
            if not response.getheader("Content-Type", "").startswith("text/event-stream"):
                _checked(response)
            while line := response.readline():
                if not line.strip():
                    continue
                document = json.loads(line.removeprefix(b"data: "))
                if "error" in document:
                    raise RefusedError(status, document["error"])
                yield _event(document)
        finally:
            response.close()
            self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _checked(response: http.client.HTTPResponse) -> bytes:
    body = response.read()
    if response.status != http.HTTPStatus.OK:
        raise RefusedError(str(response.status), json.loads(body)["error"])
    return body


def _event(document: dict[str, Any]) -> Answer:
    """A response of the generate extension: everything that is not the protocol's own is an output or a parameter."""
    name, version = document.pop("model_name"), document.pop("model_version")
    request_id = document.pop("id", "")
    outputs = {}
    for key, value in document.items():
        flat = [
            each.encode() if isinstance(each, str) else each for each in (value if isinstance(value, list) else [value])
        ]
        outputs[key] = np.array(flat, object if isinstance(flat[0], bytes) else None)
    return Answer(name, version, request_id, outputs, {})


def _context(credentials: Credentials) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(credentials.root))
    if credentials.cert is not None:
        context.load_cert_chain(credentials.cert, credentials.key)
    return context
