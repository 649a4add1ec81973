"""ASGI application of the metrics page."""

import asyncio
import gzip
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from time import monotonic

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.metrics import MetricFamily, MetricsApi
from naiad_metrics.text import pieces

_TURN = 0.001
"""Seconds of one turn of writing text: the event loop serves requests in between."""

_GZIP_LEVEL = 1
"""The fastest level shrinks this text to a twentieth; higher levels cost more than they save."""


def make_application(source: MetricsApi) -> Starlette:
    """`/metrics` of that service; every other path is a 404, every other method than GET and HEAD a 405."""
    compression = CodecThreads("naiad-metrics-gzip", 1)

    async def metrics(request: Request) -> Response:
        parts = await _written(await source.scrape())
        headers = {"Vary": "Accept-Encoding"}
        if _takes_gzip(request.headers.get("accept-encoding", "")):
            parts = [await compression.run(partial(_compressed, parts))]
            headers["Content-Encoding"] = "gzip"
        return _Parts(parts, headers)

    async def not_found(request: Request, _error: Exception) -> Response:
        return PlainTextResponse(f"there is nothing at '{request.url.path}'; metrics are at /metrics\n", 404)

    application = Starlette(
        routes=[Route("/metrics", metrics, methods=["GET"])],
        exception_handlers={404: not_found},
    )
    application.router.redirect_slashes = False
    return application


class _Parts(Response):
    """A text sent in parts, each in its own turn of the event loop: writing a megabyte to the socket takes a while.

    Starlette's own streams watch for disconnects, with tasks that cost more than all of this.
    """

    media_type = "text/plain; charset=utf-8"

    def __init__(self, parts: Sequence[bytes], headers: Mapping[str, str]) -> None:
        super().__init__(headers={**headers, "Content-Length": str(sum(map(len, parts)))})
        self._parts = parts

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})


async def _written(families: Iterable[MetricFamily]) -> list[bytes]:
    """The text in parts; the event loop runs other tasks between them."""
    parts: list[bytes] = []
    lines: list[str] = []
    until = monotonic() + _TURN
    for piece in pieces(families):
        lines.append(piece)
        if monotonic() > until:
            parts.append("".join(lines).encode())
            lines.clear()
            await asyncio.sleep(0)
            until = monotonic() + _TURN
    return [*parts, "".join(lines).encode()]


def _compressed(parts: Iterable[bytes]) -> bytes:
    return gzip.compress(b"".join(parts), _GZIP_LEVEL, mtime=0)


def _takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header names gzip with a quality that is not 0."""
    for part in accepted.split(","):
        name, _, quality = part.partition(";")
        if name.strip().lower() in ("gzip", "x-gzip", "*"):
            key, _, value = quality.partition("=")
            return not (key.strip().lower() == "q" and value.strip().rstrip("0").rstrip(".") in ("", "0"))
    return False
