"""ASGI application of the dashboard: its routes, and the parts behind them."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from naiad.errors import InternalError, NaiadError, NotFoundError, UnavailableError, UnsupportedError
from naiad_dashboard.access import AllowedHosts, PathPrefix, Restrictions, SecurityHeaders, is_own_request
from naiad_dashboard.actions import Actions
from naiad_dashboard.assets import serve_asset
from naiad_dashboard.details import Details
from naiad_dashboard.following import Follower
from naiad_dashboard.overview import history, rows
from naiad_dashboard.pages import Pages, Templates
from naiad_dashboard.records import LogTail
from naiad_dashboard.sampler import Sampler
from naiad_dashboard.streams import Streams
from naiad_dashboard.trying import Trials
from naiad_kit.frontends.api_keys import api_keys_of
from naiad_kit.tracing import FollowsRequests, Tracing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from naiad.server import ServerApi

_logger = logging.getLogger("naiad")

Endpoint = Callable[[Request], Awaitable[Response]]

_OVERVIEW = ("metadata", "statistics")
_CLIENT_CLOSED = 499


class _VersionConvertor(IntegerConvertor):
    """`{version:version}` in a path: a number of at most 18 digits, because Python refuses to read thousands."""

    regex = "[0-9]{1,18}"


register_url_convertor("version", _VersionConvertor())


class Dashboard:
    """The dashboard of one server: `application` serves it until `stop`."""

    def __init__(self, server: "ServerApi") -> None:
        """Raises InvalidArgumentError for an option that cannot be used."""
        self._server = server
        self._restrictions = Restrictions(server.settings, api_keys_of(server))
        self._sampler = Sampler(server)
        self._streams = Streams(self._sampler)
        self._follower = Follower(_tracing_of(server))
        self._details = Details(server, self._sampler, server.service(LogTail))
        self._templates = Templates(server, self._restrictions)
        self._trials = Trials(server, self._restrictions)
        self._actions = Actions(server)
        self._pages = Pages(
            server, self._sampler, self._details, self._follower, self._templates, self._trials, self._restrictions
        )
        self.application = self._application()

    def stop(self) -> None:
        """End all streams, and read no more forms."""
        self._sampler.stop()
        self._trials.stop()

    def _application(self) -> ASGIApp:
        pages, actions = self._pages, self._actions
        model = (*_OVERVIEW, "model-config", "logging")
        version = "/models/{model}/versions/{version:version}"
        application = Starlette(
            routes=[
                self._route("/", pages.models, *_OVERVIEW),
                self._route("/models/{model}", pages.model, *model),
                self._route(version, pages.model, *model),
                self._route("/ensembles", pages.ensembles, *_OVERVIEW, "model-config"),
                self._route("/slow", pages.slow, "trace"),
                self._route("/plugins", pages.plugins, "metadata"),
                self._route("/events/models", self._models_events, *_OVERVIEW),
                self._route("/events/models/{model}/versions/{version:version}", self._model_events, *model),
                self._route("/events/slow", self._slow_events, "trace"),
                self._post(f"{version}/trial", self._trials.run, "inference", "metadata"),
                self._post(f"{version}/snippets", self._trials.snippets, "inference", "metadata"),
                *(self._action_routes(actions) if actions.allowed else ()),
                Route("/static/{path:path}", serve_asset),
            ],
            exception_handlers={HTTPException: self._on_http_error, NaiadError: self._on_error},
        )
        application.router.redirect_slashes = False
        settings = self._server.settings
        behind_proxy = PathPrefix(application, settings["dashboard-root-path"])
        return SecurityHeaders(AllowedHosts(behind_proxy, settings["dashboard-allowed-hosts"]))

    def _action_routes(self, actions: Actions) -> list[Route]:
        async def control(request: Request) -> Response:
            return self._pages.control(request, actions.settings())

        return [
            self._route("/control", control, "metadata", "logging", "trace"),
            self._post("/actions/load", actions.load, "model-repository", action=True),
            self._post("/actions/unload", actions.unload, "model-repository", action=True),
            self._post("/actions/logging", actions.logs, "logging", action=True),
            self._post("/actions/trace", actions.trace, "trace", action=True),
        ]

    def _post(self, path: str, endpoint: Endpoint, *apis: str, action: bool = False) -> Route:
        """A route for the scripts of this dashboard that answers in JSON; an `action` needs the token besides."""

        async def guarded(request: Request) -> Response:
            if not is_own_request(request.headers):
                return _refused(403, "this request does not come from a page of this dashboard")
            header = self._restrictions.refusal(apis, request.headers)
            if header:
                return _refused(403, f"this API is restricted, expecting header '{header}'", header=header)
            if not action:
                problem = self._restrictions.key_refusal(apis, request.headers, request.path_params["model"])
                if problem:
                    return _refused(403, problem, header="x-api-key")
            token = self._actions.token
            try:
                if action and not (token is not None and await token.accepts(request.headers)):
                    what = "this is not" if "authorization" in request.headers else "an action needs"
                    return _refused(401, f"{what} the token in the file of --dashboard-token-file", token=True)
                return await endpoint(request)
            except NaiadError as error:
                return _refused(_status(error), str(error))
            except HTTPException:
                raise
            except ClientDisconnect:  # there is no reader of this answer
                return _refused(_CLIENT_CLOSED, "the client left before its request was complete")
            except Exception:
                _logger.exception("the dashboard failed at '%s'", request.url.path)
                return _refused(500, "the dashboard failed; the server's log says why")

        return Route(path, guarded, methods=["POST"])

    def _route(self, path: str, endpoint: Endpoint, *apis: str) -> Route:
        """A route for callers that may use these groups of calls."""

        async def restricted(request: Request) -> Response:
            header = self._restrictions.refusal(apis, request.headers)
            if header:
                return self._templates.page(
                    request,
                    "message.html",
                    403,
                    title="Restricted",
                    text=f"This page shows APIs that are restricted: it expects the header '{header}'.",
                )
            try:
                return await endpoint(request)
            except (NaiadError, HTTPException):
                raise
            except Exception:
                _logger.exception("the dashboard failed at '%s'", request.url.path)
                return PlainTextResponse("the dashboard failed; the server's log says why\n", 500)

        return Route(path, restricted)

    # Live streams

    async def _models_events(self, _request: Request) -> Response:
        def document(first: bool) -> dict[str, Any]:
            return {"rows": rows(self._server, self._sampler), "ready": self._server.ready().ready}

        return self._stream("models", document)

    async def _model_events(self, request: Request) -> Response:
        name, version = request.path_params["model"], request.path_params["version"]

        def document(first: bool) -> dict[str, Any]:
            track = self._sampler.tracks.get((name, version))
            points = () if track is None else track.points if first else [track.points[-1]]
            return {"details": self._details.of(name, version), "points": history(points)}

        return self._stream(f"model {version} {name}", document)

    async def _slow_events(self, _request: Request) -> Response:
        def document(first: bool) -> dict[str, Any]:
            slowest = [asdict(each) for each in self._follower.slowest()]
            return {"requests": slowest, "followed": self._follower.followed}

        return self._stream("slow", document)

    def _stream(self, view: str, make: Callable[[bool], Any]) -> Response:
        if self._sampler.is_full:
            headers = {"Retry-After": "10"}
            return PlainTextResponse("too many viewers, or the server is stopping; try again later\n", 503, headers)
        unbuffered = {"X-Accel-Buffering": "no"}  # reverse proxies would hold the events back
        return StreamingResponse(self._events(view, make), headers=unbuffered, media_type="text/event-stream")

    async def _events(self, view: str, make: Callable[[bool], Any]) -> "AsyncGenerator[bytes, None]":
        with self._watching():
            events = self._streams.events(view, make)
            try:
                async for event in events:
                    yield event
            finally:
                await events.aclose()

    @contextmanager
    def _watching(self) -> "Iterator[None]":
        """Follow requests for as long as any page is open, so that the page of slow ones has something to show."""
        self._follower.enter()
        try:
            yield
        finally:
            self._follower.leave()

    # Errors

    async def _on_http_error(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == 404:
            return self._pages.absent(request, f"There is nothing at {request.url.path}.")
        headers = error.headers if isinstance(error, HTTPException) else None
        return PlainTextResponse(f"{error.detail if isinstance(error, HTTPException) else error}\n", status, headers)

    async def _on_error(self, request: Request, error: Exception) -> Response:
        return self._templates.page(request, "message.html", 400, title="Refused", text=str(error))


def _refused(status: int, error: str, **members: Any) -> Response:
    return JSONResponse({"error": error, **members}, status)


def _status(error: NaiadError) -> int:
    if isinstance(error, NotFoundError):
        return 404
    return 503 if isinstance(error, UnavailableError) else 500 if isinstance(error, InternalError) else 400


def _tracing_of(server: "ServerApi") -> FollowsRequests | None:
    try:
        tracing = server.service(Tracing)
    except UnsupportedError:
        return None
    return tracing if isinstance(tracing, FollowsRequests) else None
