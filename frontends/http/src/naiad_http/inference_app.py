"""ASGI application of the infer route, for compressed and large requests and for other ASGI servers.

It precedes starlette's router. Under our own protocol class it serves the requests whose body or response is
compressed or large, because that work belongs on another thread.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from functools import partial
from time import monotonic_ns
from typing import Any, Self, TypeVar
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from naiad.errors import NaiadError, RequestCancelledError
from naiad.types import Request
from naiad_http.bodies import read_body
from naiad_http.codec import Encoded, ResponseForm
from naiad_http.codec.request_head import RequestHead
from naiad_http.codec.responses import LargeOutput
from naiad_http.compression import compress, decompress, preferred_coding
from naiad_http.connection_context import ConnectionContext
from naiad_http.cycles import CALL, REQUEST_HEAD
from naiad_http.request_heads import RequestHeadReader
from naiad_http.statuses import (
    NOT_FOUND,
    Headers,
    HttpError,
    HttpResponse,
    Outcome,
    error_response,
    not_allowed,
    unexpected,
)
from naiad_http.trace_events import ApplicationTrace
from naiad_kit.buffers import Buffer
from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES, ByteBudget

_T = TypeVar("_T")
_FEW_BYTES = 16384
"""Responses up to this size are compressed on the event loop: a thread costs more."""

_FEW_COMPRESSED = 1024
"""Bodies up to this size are decompressed on the event loop: their content is at most a megabyte, which takes 2 ms."""


class InferenceApp:
    """Serves infer requests."""

    def __init__(self, context: ConnectionContext, request_heads: RequestHeadReader) -> None:
        self._context = context
        self._request_heads = request_heads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, whose path must be that of an infer route."""
        with ApplicationTrace(self._context.inference.tracing, scope, send) as trace:
            try:
                with Charge(self._context.budget) as charge:
                    response = await self._serve(scope, receive, trace, charge)
            except (NaiadError, HttpError) as error:
                response = error_response(error)
            except Exception as error:  # noqa: BLE001 - a bug must not leave the client without a response in JSON
                response = unexpected(error)
            await send_response(response, trace.send)

    async def _serve(self, scope: Scope, receive: Receive, trace: ApplicationTrace, charge: "Charge") -> HttpResponse:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request_head = request_head_of(scope, self._request_heads)
        body: Buffer = await read_body(receive, self._context.limit)
        received_ns = monotonic_ns()
        request, form = await while_connected(self._decode(request_head, headers, body, charge, received_ns), receive)
        del body
        trace.begin(request, request_head, received_ns)
        try:
            outcome = await self._infer(request, scope, receive)
        except NaiadError as error:
            return error_response(error, request.id)
        inference = self._context.inference
        try:
            encoded = inference.encode(outcome, request, form)
        except LargeOutput:
            encoded = await inference.threads.run(partial(inference.encode, outcome, request, form, on_thread=True))
        if isinstance(encoded, HttpResponse):
            return encoded
        return await self._whole_response(encoded, preferred_coding(headers.get("accept-encoding", "")))

    async def _decode(
        self, request_head: RequestHead, headers: Mapping[str, str], body: Buffer, charge: "Charge", received_ns: int
    ) -> tuple[Request, ResponseForm]:
        inference, coding = self._context.inference, headers.get("content-encoding", "")
        if coding:
            body = await self._decompress(body, coding)
            charge.reserve(len(body))
        split = len(body) if request_head.header_length is None else max(0, request_head.header_length)
        front = body if split == len(body) else bytes(body[:split])
        rest = memoryview(body)[split:]
        if inference.is_large(request_head, front, rest):
            charge.reserve(inference.decoded_bytes(request_head, front, rest))
            return await inference.decode_large(request_head, front, rest, received_ns)
        return inference.decode(request_head, bytes(front), rest, received_ns)

    async def _decompress(self, body: Buffer, coding: str) -> Buffer:
        if len(body) <= _FEW_COMPRESSED:
            return decompress(body, coding, self._context.limit)
        return await self._context.compression.run(partial(decompress, body, coding, self._context.limit))

    async def _whole_response(self, encoded: Encoded, coding: str) -> HttpResponse:
        content = b"".join((encoded.text, *encoded.buffers))
        headers: Headers = (("Content-Type", "application/json"),)
        if encoded.size:
            length = str(len(encoded.text))
            headers = (("Content-Type", "application/octet-stream"), ("Inference-Header-Content-Length", length))
        if coding == "identity":
            return HttpResponse(200, content, headers)
        if len(content) <= _FEW_BYTES:
            content = compress(content, coding)
        else:
            content = await self._context.compression.run(partial(compress, content, coding))
        return HttpResponse(200, content, (*headers, ("Content-Encoding", coding), ("Vary", "Accept-Encoding")))

    async def _infer(self, request: Request, scope: Scope, receive: Receive) -> Outcome:
        """The outcome of a request, which is cancelled if the client disconnects or the server cancels this task."""
        delivered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def deliver(outcome: Outcome) -> None:
            if not delivered.done():
                delivered.set_result(outcome)

        call = self._context.submit(request, deliver)
        scope.get("state", {})[CALL] = call
        gone = asyncio.ensure_future(disconnected(receive))
        try:
            await asyncio.wait((delivered, gone), return_when=asyncio.FIRST_COMPLETED)
            if not delivered.done():
                raise RequestCancelledError("the client left before the answer was there")
            return delivered.result()
        finally:
            gone.cancel()
            call.cancel()


def request_head_of(scope: Scope, request_heads: RequestHeadReader) -> RequestHead:
    """The head of a request to a route of inference. Raises HttpError 404 or 405, and what reading the head raises."""
    if scope["method"] != "POST":
        raise not_allowed(["POST"])
    request_head = scope.get("extensions", {}).get(REQUEST_HEAD) or request_heads.read(
        raw_path(scope), scope["headers"]
    )
    if request_head is None:
        raise HttpError(404, NOT_FOUND)
    return request_head


class Charge:
    """The share of one request in the budget of bytes in flight beside its body; a `with` block releases it."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._reserved = 0

    def reserve(self, count: int) -> None:
        """Reserve more than a few bytes. Raises UnavailableError."""
        if count > UNCHARGED_BYTES:
            self._budget.reserve(count)
            self._reserved += count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._budget.release(self._reserved)


async def while_connected(work: Coroutine[Any, Any, _T], receive: Receive) -> _T:
    """The result of `work`. Cancels it and raises RequestCancelledError if the client disconnects before."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(disconnected(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise RequestCancelledError("the client left before its request was decoded")
        return task.result()
    finally:
        gone.cancel()
        task.cancel()
        del task  # it holds its error, whose traceback holds this frame


async def send_response(response: HttpResponse, send: Send) -> None:
    """Send a complete response over ASGI."""
    headers = [*as_asgi(response.headers), (b"content-length", b"%d" % len(response.body))]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


def as_asgi(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Headers in the form of ASGI."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]


def raw_path(scope: Scope) -> bytes:
    """The percent-encoded path of a request as the client sent it; `raw_path` is optional in ASGI."""
    path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    return path.partition(b"?")[0]


async def disconnected(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
