"""The infer route as a raw ASGI application, for what the protocol class leaves to it and for any other ASGI server.

It stands in front of starlette's router. Under our own protocol class it answers the requests whose body or answer is
compressed, since that work belongs on another thread.
"""

import asyncio
from collections.abc import Callable
from time import monotonic_ns
from typing import ParamSpec
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from naiad.errors import NaiadError, RequestCancelledError
from naiad.types import Request
from naiad_http.bodies import read_body
from naiad_http.codec import Encoded
from naiad_http.codec.envelope import Envelope
from naiad_http.compression import compress, decompress, wanted_coding
from naiad_http.cycles import ENVELOPE
from naiad_http.envelopes import EnvelopeReader
from naiad_http.site import Site
from naiad_http.statuses import Answer, Headers, HttpError, Outcome, answer_to, unexpected
from naiad_http.telling import ApplicationTrace

_P = ParamSpec("_P")
_SMALL = 65536
"""Up to so many bytes are (de)compressed at once: a thread would cost more."""


class InferenceApp:
    """Answers infer requests."""

    def __init__(self, site: Site, envelopes: EnvelopeReader) -> None:
        self._site = site
        self._envelopes = envelopes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whose path must be that of an infer route."""
        with ApplicationTrace(self._site.inference.tracing, send) as trace:
            try:
                answer = await self._answer(scope, receive, trace)
            except (NaiadError, HttpError) as error:
                answer = answer_to(error)
            except Exception as error:  # noqa: BLE001 - a bug must not leave the client without an answer in JSON
                answer = unexpected(error)
            await send_answer(answer, trace.send)

    async def _answer(self, scope: Scope, receive: Receive, trace: ApplicationTrace) -> Answer:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        envelope = envelope_of(scope, self._envelopes)
        body = await read_body(receive, self._site.limit)
        received_ns = monotonic_ns()
        body = await _off_loop(len(body), decompress, body, headers.get("content-encoding", ""), self._site.limit)
        split = len(body) if envelope.header_length is None else max(0, envelope.header_length)
        request, form = self._site.inference.decode(envelope, body[:split], body[split:])
        trace.begin(request, envelope, received_ns)
        outcome = await self._infer(request, receive)
        encoded = self._site.inference.encode(outcome, request, form)
        if isinstance(encoded, Answer):
            return encoded
        return await _whole_answer(encoded, wanted_coding(headers.get("accept-encoding", "")))

    async def _infer(self, request: Request, receive: Receive) -> Outcome:
        """The outcome of a request, which is taken back when the client leaves or the server cancels this task."""
        answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def deliver(outcome: Outcome) -> None:
            if not answered.done():
                answered.set_result(outcome)

        call = self._site.submit(request, deliver)
        leaving = asyncio.ensure_future(left(receive))
        try:
            await asyncio.wait((answered, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not answered.done():
                raise RequestCancelledError("the client left before the answer was there")
            return answered.result()
        finally:
            leaving.cancel()
            call.cancel()


def envelope_of(scope: Scope, envelopes: EnvelopeReader) -> Envelope:
    """The envelope of a request to a route of inference. Raises HttpError 405 and what reading an envelope raises."""
    if scope["method"] != "POST":
        raise HttpError(405, "Method Not Allowed", (("Allow", "POST"),))
    envelope = scope.get("extensions", {}).get(ENVELOPE) or envelopes.read(raw_path(scope), scope["headers"])
    if envelope is None:
        raise HttpError(404, "Not Found")
    return envelope


async def send_answer(answer: Answer, send: Send) -> None:
    """Send a whole answer over ASGI."""
    headers = [*as_asgi(answer.headers), (b"content-length", b"%d" % len(answer.body))]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def as_asgi(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI wants them."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]


def raw_path(scope: Scope) -> bytes:
    """The path of a request as it came, percent-encoded; servers need not tell it."""
    given: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    return given.partition(b"?")[0]


async def left(receive: Receive) -> None:
    """Return when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _whole_answer(encoded: Encoded, coding: str) -> Answer:
    content = b"".join((encoded.text, *encoded.buffers))
    headers: Headers = (("Content-Type", "application/json"),)
    if encoded.size:
        length = str(len(encoded.text))
        headers = (("Content-Type", "application/octet-stream"), ("Inference-Header-Content-Length", length))
    if coding != "identity":
        content = await _off_loop(len(content), compress, content, coding)
        headers = (*headers, ("Content-Encoding", coding), ("Vary", "Accept-Encoding"))
    return Answer(200, content, headers)


async def _off_loop(size: int, work: Callable[_P, bytes], *args: _P.args, **kwargs: _P.kwargs) -> bytes:
    """What `work` returns, on another thread when it has more than a little to do."""
    if size <= _SMALL:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
