"""`generate` and `generate_stream` as a raw ASGI application, for any other ASGI server than our own protocol class."""

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
from naiad_http.generate import EventStream, OneResponse
from naiad_http.inference_app import as_asgi, left, request_head_of, send_response, while_connected
from naiad_http.request_heads import RequestHeadReader
from naiad_http.response_sinks import with_headers
from naiad_http.statuses import Headers, HttpError, HttpResponse, Outcome, error_response, unexpected
from naiad_http.trace_events import ApplicationTrace
from naiad_http.wire import EVENT_HEADERS
from naiad_kit.frontends.codec_threads import CodecThreads

_Taken = TypeVar("_Taken")
_MOST_WAITING = 16
"""So many responses wait for the ASGI server to take them; then the model waits."""


class GenerationApp:
    """Answers `generate` and `generate_stream`."""

    def __init__(self, context: ConnectionContext, request_heads: RequestHeadReader) -> None:
        self._context = context
        self._request_heads = request_heads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whose path must be that of one of these routes."""
        with ApplicationTrace(self._context.inference.tracing, send) as trace:
            await self._serve(scope, receive, trace)

    async def _serve(self, scope: Scope, receive: Receive, trace: ApplicationTrace) -> None:
        request_id, send = "", trace.send
        try:
            request_head = request_head_of(scope, self._request_heads)
            body = await read_body(receive, self._context.limit)
            received_ns = monotonic_ns()
            inference = self._context.inference
            if len(body) > LARGE_BYTES:
                request = await while_connected(inference.decode_large_generate(request_head, body), receive)
            else:
                request = inference.decode_generate(request_head, body)
            del body
            trace.begin(request, request_head, received_ns)
            request_id = request.id
            inbox = Inbox()
            inbox.call = self._context.submit(request, inbox.put, streams=True)
        except (NaiadError, HttpError) as error:
            await send_response(error_response(error, request_id), send)
        except Exception as error:  # noqa: BLE001 - a bug must not leave the client without an answer in JSON
            await send_response(unexpected(error, request_id), send)
        else:
            leaving = asyncio.ensure_future(left(receive))
            leaving.add_done_callback(lambda _: inbox.close())
            threads = self._context.inference.threads
            try:
                headers = partial(self._context.inference.load_headers, request_head)
                limit = self._context.inference.max_json_output
                if request_head.action == "generate":
                    await _answer(OneResponse(request.id, limit), request, inbox, headers, send, threads)
                else:
                    await _stream(EventStream(request.id, limit), inbox, headers, send, threads)
            except OSError:  # ASGI servers may tell so that the client is gone
                pass
            finally:
                leaving.cancel()
                inbox.end()


class Inbox:
    """The outcomes of one call until they are taken; the model waits when there are many."""

    def __init__(self) -> None:
        self.call: Call | None = None
        self._waiting: list[Outcome] = []
        self._awake = asyncio.Event()
        self._closed = False

    def put(self, outcome: Outcome) -> None:
        """Take an outcome in."""
        self._waiting.append(outcome)
        self._awake.set()
        if len(self._waiting) >= _MOST_WAITING and self.call is not None:
            self.call.pause()

    def close(self) -> None:
        """Nobody wants further outcomes."""
        self._closed = True
        self._awake.set()

    def end(self) -> None:
        """Cancel the call, and break the cycle of the call and this inbox, which would keep the request."""
        if self.call is not None:
            self.call.cancel()
        self.call = None
        self._waiting.clear()

    async def __aiter__(self) -> AsyncIterator[list[Outcome]]:
        """All outcomes that came since the last time, until the inbox is closed."""
        while True:
            await self._awake.wait()
            self._awake.clear()
            if self._closed:
                return
            waiting, self._waiting = self._waiting, []
            yield waiting
            if self.call is not None:
                self.call.resume()


async def _answer(
    one: OneResponse, request: Request, inbox: Inbox, headers: Callable[[], Headers], send: Send, threads: CodecThreads
) -> None:
    async for outcomes in inbox:
        for outcome in outcomes:
            answer = await _taken(one.take, outcome, threads)
            if answer is not None:
                await send_response(with_headers(answer, headers), send)
                return
    error = RequestCancelledError("the client left before the answer was there")
    await send_response(error_response(error, request.id), send)


async def _stream(
    stream: EventStream, inbox: Inbox, headers: Callable[[], Headers], send: Send, threads: CodecThreads
) -> None:
    """Send what comes together as one piece; the head comes with the first."""
    begun = False
    async for outcomes in inbox:
        events: list[bytes] = []
        for outcome in outcomes:
            told = await _taken(stream.take, outcome, threads)
            if isinstance(told, HttpResponse):
                await send_response(told, send)
                return
            events.append(told)
            if stream.over:
                break
        if not begun:
            begun = True
            lines = as_asgi((("Content-Type", "text/event-stream; charset=utf-8"), *EVENT_HEADERS, *headers()))
            await send({"type": "http.response.start", "status": 200, "headers": lines})
        await send({"type": "http.response.body", "body": b"".join(events), "more_body": not stream.over})
        if stream.over:
            return


async def _taken(take: Callable[[Outcome, bool], _Taken], outcome: Outcome, threads: CodecThreads) -> _Taken:
    """What `take` makes of an outcome, of a large one on a thread."""
    try:
        return take(outcome, False)
    except LargeOutput:
        return await threads.run(partial(take, outcome, True))
