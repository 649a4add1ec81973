"""A whole Naiad server in a process of Ray, without listeners: its HTTP application and its RPCs."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, cast
from urllib.parse import unquote

from naiad import Server
from naiad.errors import NaiadError
from naiad.options import Settings
from naiad.reports import IndexEntry, Readiness
from naiad.server import ServerApi
from naiad_config.stores import roots_of, scan
from naiad_kit.frontends.embedding import AsgiApp, EmbeddedGrpc, EmbeddedHttp, Message, Rpc, StatusError, StreamRpc
from naiad_ray.board import Question
from naiad_ray.raw import GrpcRequest, HttpRequest, RawAnswer, RawCall
from naiad_ray.settings import options_of, replica_options
from naiad_statistics.reports import ModelStatistics

UNIMPLEMENTED = 12


@dataclass(frozen=True, slots=True)
class Views:
    """What all replicas report together, for one request; None where the server's own report is what counts."""

    statistics: list[ModelStatistics] | None = None
    index: list[IndexEntry] | None = None
    readiness: Readiness | None = None


views: ContextVar[Views] = ContextVar("views", default=Views())  # noqa: B039 - Views is frozen
"""The views of the request that the current task serves."""


class MergedServer:
    """A server whose reports are those in `views` where these are set; everything else is the server's own."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def statistics(self, name: str = "", version: int = 0) -> list[ModelStatistics]:
        """The counters of all replicas."""
        merged = views.get().statistics
        return self._server.statistics(name, version) if merged is None else merged

    async def fresh_index(self, ready: bool = False) -> list[IndexEntry]:
        """Every model of all replicas."""
        merged = views.get().index
        if merged is None:
            return await self._server.fresh_index(ready)
        return [entry for entry in merged if not ready or entry.state == "READY"]

    def ready(self) -> Readiness:
        """Whether every group can serve."""
        merged = views.get().readiness
        return self._server.ready() if merged is None else merged


class LocalServer:
    """The server of a replica, or of a front desk, which has no models. For the event loop of the process."""

    def __init__(self, server: Server, http: AsgiApp | None, rpcs: Mapping[str, Rpc | StreamRpc]) -> None:
        self.server = server
        self.http = http
        self._rpcs = rpcs

    @classmethod
    async def start(
        cls,
        repository: tuple[str, ...],
        options: Mapping[str, Any],
        models: tuple[str, ...] | None,
        other: tuple[str, ...],
    ) -> "LocalServer":
        """Start a server with the models whose names match `models` and not `other`; None takes all.

        Raises NaiadError for wrong options, for a repository that cannot be read, and for a model that fails unless
        the option exit-on-error is false; then the index reports it.
        """
        server = Server()
        declared = server.plugins.options()
        values = options_of(options, declared) | replica_options(declared)
        if models is not None:
            roots = roots_of(repository, server.plugins.repository_scheme, Settings(declared, values))
            names = [name for name in await asyncio.to_thread(scan, roots) if _is_of(name, models, other)]
            values |= {"model-control-mode": "explicit", "load-model": tuple(names)}
        server = Server(model_repository=repository, options=values)
        await server.start()
        merged = cast("ServerApi", MergedServer(server))
        frontends = server.plugins.frontends().values()
        http = next((each.application(merged) for each in frontends if isinstance(each, EmbeddedHttp)), None)
        rpcs = [rpc for each in frontends if isinstance(each, EmbeddedGrpc) for rpc in each.rpcs(merged)]
        return cls(server, http, {rpc.path: rpc for rpc in rpcs})

    async def stop(self) -> None:
        """Answer what is in flight, and free everything."""
        await self.server.stop()

    # whole answers

    async def answer(self, request: HttpRequest | GrpcRequest) -> RawAnswer:
        """The whole answer to a request; errors of models and clients are answers as well."""
        if isinstance(request, GrpcRequest):
            return await self._answer_rpc(request)
        head: Message = {}
        parts: list[bytes] = []
        async with aclosing(self.stream_http(request)) as events:
            async for event in events:
                if event["type"] == "http.response.start":
                    head = event
                else:
                    parts.append(event.get("body", b""))
        return RawAnswer(head["status"], tuple(tuple(pair) for pair in head["headers"]), b"".join(parts))

    async def _answer_rpc(self, request: GrpcRequest) -> RawAnswer:
        rpc = self._rpcs.get(request.path)
        if not isinstance(rpc, Rpc):
            return RawAnswer(UNIMPLEMENTED, text=f"the RPC {request.path} is not served; install naiad-grpc")
        try:
            return RawAnswer(0, body=await rpc.answer(request.message, RawCall(request.metadata)))
        except StatusError as error:
            return RawAnswer(error.code, text=error.message)

    # streams

    async def stream_http(self, request: HttpRequest) -> AsyncGenerator[Message, None]:
        """The events of ASGI that answer a request. Closing it cancels the request."""
        events: asyncio.Queue[Message | None] = asyncio.Queue(maxsize=16)
        incoming = iter([{"type": "http.request", "body": request.body, "more_body": False}])

        async def receive() -> Message:
            event = next(incoming, None)
            return event if event is not None else await asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                await self.serve_http(_scope(request), receive, events.put)
            finally:
                await events.put(None)

        task = asyncio.get_running_loop().create_task(run())
        try:
            while (event := await events.get()) is not None:
                yield event
            await task
        finally:
            task.cancel()
            while not events.empty():  # the end of the events needs room, too
                events.get_nowait()

    async def serve_http(self, scope: Message, receive: Any, send: Any) -> None:
        """Serve a request by ASGI."""
        if self.http is None:
            await answer_asgi(RawAnswer(501, _JSON, b'{"error":"HTTP is not served; install naiad-http"}'), send)
        else:
            await self.http(scope, receive, send)

    def stream_rpc(
        self, path: str, messages: AsyncIterator[bytes], metadata: tuple[tuple[str, str | bytes], ...]
    ) -> AsyncGenerator[bytes, None]:
        """The messages that answer a stream. Raises StatusError; closing it cancels its requests."""
        rpc = self._rpcs.get(path)
        if not isinstance(rpc, StreamRpc):
            raise StatusError(UNIMPLEMENTED, f"the RPC {path} is not served; install naiad-grpc")
        return rpc.answer(messages, RawCall(metadata))

    # reports

    async def report(self, question: Question) -> object:
        """The answer to a question of the control plane: a list of reports, or the error."""
        try:
            if question.about == "statistics":
                return self.server.statistics(question.model, question.version)
            if question.about == "index":
                return await self.server.fresh_index()
            return self.server.ready()
        except NaiadError as error:
            return str(error)

    def is_decoupled(self, model: str) -> bool:
        """Whether a model answers a request none, one or many times; False for an unknown one."""
        try:
            policy = self.server.model_config(model).model_transaction_policy
        except NaiadError:
            return False
        return policy is not None and policy.decoupled


_JSON = ((b"content-type", b"application/json"),)


def answer_in_json(status: int, message: bytes) -> RawAnswer:
    """An HTTP error; `message` is a JSON document."""
    return RawAnswer(status, _JSON, message)


async def answer_asgi(answer: RawAnswer, send: Any) -> None:
    """Send a whole HTTP answer by ASGI."""
    headers = [pair for pair in answer.headers if pair[0].lower() != b"content-length"]
    headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _is_of(name: str, models: tuple[str, ...], other: tuple[str, ...]) -> bool:
    if models:
        return any(fnmatchcase(name, pattern) for pattern in models)
    return not any(fnmatchcase(name, pattern) for pattern in other)


def _scope(request: HttpRequest) -> Message:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote(request.path.decode("latin-1")),
        "raw_path": request.path,
        "query_string": request.query,
        "root_path": "",
        "headers": list(request.headers),
        "client": None,
        "server": None,
        "state": {},
    }
