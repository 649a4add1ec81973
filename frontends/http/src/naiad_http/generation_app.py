"""ASGI application of `generate` and `generate_stream`, for large requests and for other ASGI servers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from time import monotonic_ns
from typing import TypeVar

from starlette.types import Receive, Scope, Send

from naiad.errors import NaiadError, RequestCancelledError
from naiad.types import Request
from naiad_http.bodies import read_body
from naiad_http.codec.requests import LARGE_BYTES
from naiad_http.codec.responses import LargeOutput
from naiad_http.connection_context import Call, ConnectionContext
from naiad_http.cycles import CALL
from naiad_http.generate import EventStream, OneResponse
from naiad_http.inference_app import as_asgi, disconnected, request_head_of, send_response, while_connected
from naiad_http.request_heads import RequestHeadReader
from naiad_http.response_sinks import with_headers
from naiad_http.statuses import Headers, HttpError, HttpResponse, Outcome, error_response, unexpected
from naiad_http.trace_events import ApplicationTrace
from naiad_http.wire import EVENT_HEADERS
from naiad_kit.frontends.codec_threads import CodecThreads

_Encoded = TypeVar("_Encoded")
_MOST_WAITING = 16
"""The maximum of responses that wait for the ASGI server; then the model waits."""


class GenerationApp:
    """Serves `generate` and `generate_stream`."""

    def __init__(self, context: ConnectionContext, request_heads: RequestHeadReader) -> None:
        self._context = context
        self._request_heads = request_heads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, whose path must be that of one of these routes."""
        with ApplicationTrace(self._context.inference.tracing, scope, send) as trace:
            await self._serve(scope, receive, trace)

    async def _serve(self, scope: Scope, receive: Receive, trace: ApplicationTrace) -> None:
        request_id, send = "", trace.send
        try:
            request_head = request_head_of(scope, self._request_heads)
            body = await read_body(receive, self._context.limit)
            received_ns = monotonic_ns()
            inference = self._context.inference
            if len(body) > LARGE_BYTES:
                decoding = inference.decode_large_generate(request_head, body, received_ns)
                request = await while_connected(decoding, receive)
                del decoding  # which holds the body
            else:
                request = inference.decode_generate(request_head, body, received_ns)
            del body
            trace.begin(request, request_head, received_ns)
            request_id = request.id
            inbox = Inbox()
            inbox.call = self._context.submit(request, inbox.put, streams=True)
            scope.get("state", {})[CALL] = inbox.call
        except (NaiadError, HttpError) as error:
            await send_response(error_response(error, request_id), send)
        except Exception as error:  # noqa: BLE001 - a bug must not leave the client without a response in JSON
            await send_response(unexpected(error, request_id), send)
        else:
            gone = asyncio.ensure_future(disconnected(receive))
            gone.add_done_callback(lambda _: inbox.close())
            threads = self._context.inference.threads
            try:
                headers = partial(self._context.inference.load_headers, request_head)
                limit = self._context.inference.max_json_output
                if request_head.action == "generate":
                    await _send_one(OneResponse(request.id, limit), request, inbox, headers, send, threads)
                else:
                    await _send_stream(EventStream(request.id, limit), inbox, headers, send, threads)
            except OSError:  # ASGI servers may report so that the client is gone
                pass
            finally:
                gone.cancel()
                inbox.end()


class Inbox:
    """Queue of the outcomes of one call; pauses the call when there are many."""

    def __init__(self) -> None:
        self.call: Call | None = None
        self._waiting: list[Outcome] = []
        self._awake = asyncio.Event()
        self._closed = False

    def put(self, outcome: Outcome) -> None:
        """Queue an outcome."""
        self._waiting.append(outcome)
        self._awake.set()
        if len(self._waiting) >= _MOST_WAITING and self.call is not None:
            self.call.pause()

    def close(self) -> None:
        """End the iteration: the client has disconnected."""
        self._closed = True
        self._awake.set()

    def end(self) -> None:
        """Cancel the call, and break the cycle of the call and this inbox, which would keep the request."""
        if self.call is not None:
            self.call.cancel()
        self.call = None
        self._waiting.clear()

    async def __aiter__(self) -> AsyncIterator[list[Outcome]]:
        """The outcomes that were queued since the last iteration, until the inbox is closed."""
        while True:
            await self._awake.wait()
            self._awake.clear()
            if self._closed:
                return
            waiting, self._waiting = self._waiting, []
            yield waiting
            if self.call is not None:
                self.call.resume()


async def _send_one(
    one: OneResponse, request: Request, inbox: Inbox, headers: Callable[[], Headers], send: Send, threads: CodecThreads
) -> None:
    async for outcomes in inbox:
        for outcome in outcomes:
            response = await _encoded(one.take, outcome, threads)
            if response is not None:
                await send_response(with_headers(response, headers), send)
                return
    error = RequestCancelledError("the client left before the answer was there")
    await send_response(error_response(error, request.id), send)


async def _send_stream(
    stream: EventStream, inbox: Inbox, headers: Callable[[], Headers], send: Send, threads: CodecThreads
) -> None:
    """Send events that arrive together as one piece; the head is sent with the first."""
    begun = False
    async for outcomes in inbox:
        events: list[bytes] = []
        for outcome in outcomes:
            encoded = await _encoded(stream.take, outcome, threads)
            if isinstance(encoded, HttpResponse):
                await send_response(encoded, send)
                return
            events.append(encoded)
            if stream.over:
                break
        if not begun:
            begun = True
            lines = as_asgi((*EVENT_HEADERS, *headers()))
            await send({"type": "http.response.start", "status": 200, "headers": lines})
        await send({"type": "http.response.body", "body": b"".join(events), "more_body": not stream.over})
        if stream.over:
            return


async def _encoded(take: Callable[[Outcome, bool], _Encoded], outcome: Outcome, threads: CodecThreads) -> _Encoded:
    """The encoded form of an outcome; a large outcome is encoded on a thread."""
    try:
        return take(outcome, False)
    except LargeOutput:
        try:
            return await threads.run(partial(take, outcome, True))
        except NaiadError as error:  # as of threads, none of which could be started
            return take(error, False)
