"""ASGI application of the frontend: the inference applications, and starlette's router for all other routes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from naiad.errors import NaiadError
from naiad_http.connection_context import ConnectionContext
from naiad_http.generation_app import GenerationApp
from naiad_http.inference_app import InferenceApp, raw_path
from naiad_http.openapi import describe
from naiad_http.request_heads import ACTION_PATH, RequestHeadReader
from naiad_http.restrictions import Restrictions
from naiad_http.routes.description import DescriptionRoutes
from naiad_http.routes.health import HealthRoutes
from naiad_http.routes.logging import LoggingRoutes
from naiad_http.routes.operations import Endpoint, Operation
from naiad_http.routes.repository import RepositoryRoutes
from naiad_http.routes.shared_memory import SharedMemoryRoutes
from naiad_http.routes.statistics import StatisticsRoutes
from naiad_http.routes.trace import TraceRoutes
from naiad_http.statuses import NOT_FOUND, HttpError, HttpResponse, error_response, not_allowed, unexpected
from naiad_kit.frontends.codec_threads import CodecThreads

if TYPE_CHECKING:
    from naiad.server import ServerApi


class _TextConvertor(PathConvertor):
    """`{name:text}` in a path: any text, with slashes and, unlike starlette's `path`, with newlines."""

    regex = r"[\s\S]*"


register_url_convertor("text", _TextConvertor())


def make_application(
    every: Sequence[Operation],
    context: ConnectionContext,
    request_heads: RequestHeadReader,
    restrictions: Restrictions,
    other_ports: Mapping[str, str],
) -> ASGIApp:
    """The ASGI application of inference and of these operations; `other_ports` is from `paths_on_other_ports`."""
    paths = {each.path: [other for other in every if other.path == each.path] for each in every}
    router = Starlette(
        routes=[_route(path, same, restrictions) for path, same in paths.items()],
        exception_handlers={
            NaiadError: _on_error,
            HttpError: _on_error,
            HTTPException: partial(_on_starlette_error, other_ports),
        },
    )
    router.router.redirect_slashes = False
    inference = InferenceApp(context, request_heads)
    generation = GenerationApp(context, request_heads)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        route = ACTION_PATH.fullmatch(raw_path(scope)) if scope["type"] == "http" else None
        app: ASGIApp = router if route is None else inference if route[3] == b"infer" else generation
        await app(scope, receive, send)

    return application


def paths_on_other_ports(settings: Mapping[str, Any]) -> dict[str, str]:
    """404 messages for paths that other servers serve on the HTTP port and this one does not: `/metrics`."""
    if "metrics-port" not in settings:
        where = "this server has no metrics; they come with naiad-metrics"
    elif not settings["allow-metrics"]:
        where = "this server has no metrics, because of --allow-metrics=false"
    else:
        port = f"port {settings['metrics-port']}" if settings["metrics-port"] else "a free port, which the log names"
        where = f"metrics have a port of their own: GET /metrics at {port} (--metrics-port)"
    return {"/metrics": f"Not Found: {where}"}


def operations(
    server: "ServerApi", limit: int, stopping: Callable[[], bool], threads: CodecThreads | None = None
) -> list[Operation]:
    """Every operation that starlette serves, in the order in which paths are tried.

    Health checks report not ready when `stopping()`; `threads` decode large bodies.
    """
    document: dict[str, Any] = {}
    every = [
        *StatisticsRoutes(server).operations(),
        *HealthRoutes(server, stopping).operations(),
        *SharedMemoryRoutes(server).operations(),
        *RepositoryRoutes(server, limit, threads or CodecThreads("naiad-http-codec")).operations(),
        *TraceRoutes(server).operations(),
        *LoggingRoutes(server).operations(),
        *DescriptionRoutes(server, lambda: document).operations(),
    ]
    document.update(describe(every))
    return every


def _route(path: str, operations: Sequence[Operation], restrictions: Restrictions) -> Route:
    """One route for all operations of a path, so that a 405 names all its methods."""
    endpoints = {each.method: _restricted(each, restrictions) for each in operations}

    async def endpoint(request: Request) -> Response:
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return Route(path, endpoint, methods=list(endpoints))


def _restricted(operation: Operation, restrictions: Restrictions) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        restrictions.check(operation.api, request.headers.raw, request.path_params.get("model", ""))
        try:
            return await operation.endpoint(request)
        except (NaiadError, HttpError):
            raise
        except Exception as error:  # noqa: BLE001 - the client gets JSON for every error; the log gets the traceback
            return _response(unexpected(error))

    return endpoint


async def _on_error(_request: Request, error: Exception) -> Response:
    return _response(error_response(error) if isinstance(error, NaiadError | HttpError) else unexpected(error))


async def _on_starlette_error(other_ports: Mapping[str, str], request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return _response(unexpected(error))
    if error.status_code == 404:
        return _response(error_response(HttpError(404, other_ports.get(request.url.path, NOT_FOUND))))
    headers = tuple((error.headers or {}).items())
    if error.status_code == 405:
        return _response(error_response(not_allowed((error.headers or {}).get("Allow", "").split(", "))))
    return _response(error_response(HttpError(error.status_code, str(error.detail), headers)))


def _response(response: HttpResponse) -> Response:
    return Response(response.body, response.status, dict(response.headers))
