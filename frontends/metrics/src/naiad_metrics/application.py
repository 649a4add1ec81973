"""The one page of this frontend, as an ASGI application."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterable
from time import monotonic
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from naiad.metrics import MetricFamily
from naiad_metrics.text import pieces

if TYPE_CHECKING:
    from naiad import Server

_TURN = 0.001
"""Seconds for which text is written at a time: requests are served in between."""

_QUICKLY = 1
"""The level of gzip; it makes a twentieth of this text, and higher ones cost more than they save."""


def make_application(server: "Server") -> Starlette:
    """`/metrics` of that server; every other path is a 404, every other method a 405."""

    async def metrics(request: Request) -> Response:
        parts = await _written(await server.metrics.scrape())
        headers = {"Vary": "Accept-Encoding"}
        if _takes_gzip(request.headers.get("accept-encoding", "")):
            parts = [await asyncio.to_thread(_compressed, parts)]
            headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(sum(map(len, parts)))
        return StreamingResponse(_one_by_one(parts), headers=headers, media_type="text/plain; charset=utf-8")

    async def not_found(request: Request, _error: Exception) -> Response:
        return PlainTextResponse(f"there is nothing at '{request.url.path}'; metrics are at /metrics\n", 404)

    application = Starlette(
        routes=[Route("/metrics", metrics, methods=["GET"])],
        exception_handlers={404: not_found},
    )
    application.router.redirect_slashes = False
    return application


async def _written(families: Iterable[MetricFamily]) -> list[bytes]:
    """The text in parts, written in turns with whatever else the event loop has to do."""
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


async def _one_by_one(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    """The parts, each in a turn of its own: the socket takes a megabyte at once, which takes a while."""
    for part in parts:
        yield part
        await asyncio.sleep(0)


def _compressed(parts: Iterable[bytes]) -> bytes:
    return gzip.compress(b"".join(parts), _QUICKLY, mtime=0)


def _takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header names gzip with a quality that is not 0."""
    for part in accepted.split(","):
        name, _, quality = part.partition(";")
        if name.strip().lower() in ("gzip", "x-gzip", "*"):
            key, _, value = quality.partition("=")
            return not (key.strip().lower() == "q" and value.strip().rstrip("0").rstrip(".") in ("", "0"))
    return False
