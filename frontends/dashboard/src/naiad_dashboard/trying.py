"""Trial endpoints: send a request from a model's page, stream its responses, and write it as snippets."""

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from naiad import PluginRegistry
from naiad.errors import InvalidArgumentError, NaiadError, TooLargeError, UnavailableError
from naiad.reports import ModelMetadata
from naiad.types import Request as ModelRequest
from naiad_dashboard.access import Restrictions
from naiad_dashboard.snippets import Endpoints, Trial, snippets
from naiad_dashboard.trials import form, read_request, response_document
from naiad_kit.explanation import Explanation
from naiad_kit.frontends.addresses import host_of
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.timeline import timeline

if TYPE_CHECKING:
    from naiad.server import ServerApi

_logger = logging.getLogger("naiad")

_LARGEST = 1 << 27
"""The most bytes of a trial's body, in which files are base64."""

_MOST = 8
"""The most trials at a time; that of a model that streams for ever ends with its page."""

_TOO_MANY = f"{_MOST} trials run already; try again when one has ended"


class Trials:
    """Sends the requests of forms through the server's own API; the timeline is for callers that may use `trace`."""

    def __init__(self, server: "ServerApi", restrictions: Restrictions) -> None:
        self._server = server
        self._restrictions = restrictions
        self._threads = CodecThreads("naiad-dashboard")
        self._running = 0

    def stop(self) -> None:
        """Decode no more forms."""
        self._threads.close()

    def form(self, name: str, version: int, metadata: ModelMetadata) -> dict[str, Any]:
        """What the page needs for the form of a version."""
        return form(metadata, version, self._is_decoupled(name, version))

    async def run(self, request: Request) -> Response:
        """The responses of a request as lines of JSON, each as soon as it is there; the last line ends the trial.

        A request that cannot be read is refused with a status before the first line.
        """
        if self._running >= _MOST:
            raise UnavailableError(_TOO_MANY, 1.0)
        trial = await self._read(request)
        rules, headers = self._restrictions, request.headers
        explained = not (
            rules.refusal(("trace",), headers) or rules.key_refusal(("trace",), headers, trial.request.model_name)
        )
        return StreamingResponse(self._lines(trial.request, explained), media_type="application/x-ndjson")

    async def snippets(self, request: Request) -> Response:
        """The request of a form as snippets."""
        trial = await self._read(request)
        host = request.url.hostname or "localhost"
        return JSONResponse(await self._threads.run(partial(snippets, trial, self._endpoints(host))))

    async def _read(self, request: Request) -> Trial:
        """The trial in a body, whose bytes count in the byte budget until they are decoded."""
        name, version = request.path_params["model"], request.path_params["version"]
        metadata = self._server.model_metadata(name, version)
        budget = self._server.service(ByteBudget)
        body, reserved = bytearray(), 0
        try:
            async for piece in request.stream():
                budget.reserve(len(piece))
                reserved += len(piece)
                body += piece
                if len(body) > _LARGEST:
                    raise TooLargeError(f"a trial takes at most {_LARGEST} bytes, with files in base64")
            document, model_request = await self._threads.run(partial(_decoded, body, metadata, version))
        finally:
            budget.release(reserved)
        return Trial(model_request, document, self._is_decoupled(name, version))

    async def _lines(self, request: ModelRequest, explained: bool) -> AsyncGenerator[bytes, None]:
        if self._running >= _MOST:  # others have begun while the form was read
            yield _line({"end": {"error": _TOO_MANY}, "seconds": 0.0})
            return
        started = request.received_ns = monotonic_ns()
        explanation = request.trace = Explanation(request.model_name, request.version) if explained else None
        end: dict[str, Any] = {}
        now = started
        self._running += 1
        try:
            labels = self._labels(request)  # of a model that may be unloaded by now
            async with aclosing(self._server.stream(request)) as responses:
                async for response in responses:
                    now = monotonic_ns()
                    if not response.is_empty:
                        document = await self._threads.run(partial(response_document, response, labels))
                        yield _line({"response": document, "seconds": (now - started) / 1e9})
        except NaiadError as error:
            now = monotonic_ns()
            end["error"] = str(error)
        except Exception:
            _logger.exception("a trial of the model '%s' failed", request.model_name)
            end["error"] = "the trial failed; the server's log says why"
        finally:
            self._running -= 1
        if explanation is not None:
            end["timeline"] = timeline(explanation, started, now)
        yield _line({"end": end, "seconds": (now - started) / 1e9})

    def _labels(self, request: ModelRequest) -> dict[str, tuple[str, ...]]:
        """The labels of each output that has any."""
        name, version = request.model_name, request.version
        outputs = self._server.model_metadata(name, version).outputs
        return {each.name: self._server.labels(name, each.name, version) for each in outputs}

    def _is_decoupled(self, name: str, version: int) -> bool:
        policy = self._server.model_config(name, version).model_transaction_policy
        return policy is not None and policy.decoupled

    def _endpoints(self, host: str) -> Endpoints:
        """Where the protocols are served, for a client that sees this server under that host name."""
        settings = self._server.settings
        registry = getattr(self._server, "plugins", None)
        frontends: Mapping[str, Any] = registry.frontends() if isinstance(registry, PluginRegistry) else {}

        def endpoint(name: str) -> str:
            frontend = frontends.get(name)  # HTTP has a port, gRPC the target for clients
            port = str(getattr(frontend, "port", 0) or getattr(frontend, "target", "").rpartition(":")[2])
            return f"{host_of(host)}:{port}" if port.isdigit() and port != "0" else ""

        return Endpoints(
            endpoint("http"),
            endpoint("grpc"),
            bool(settings.get("http-use-ssl") or settings.get("http-use-ssl-mutual")),
            bool(settings.get("grpc-use-ssl") or settings.get("grpc-use-ssl-mutual")),
        )


def _decoded(body: bytearray, metadata: ModelMetadata, version: int) -> tuple[Mapping[str, Any], ModelRequest]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"the form is not valid JSON: {error}") from error
    request = read_request(document, metadata, version)
    return document, request


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode() + b"\n"
