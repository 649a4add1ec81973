"""Putting the parts together: the site of one server, the ASGI application over it, and the listener in front."""

import ssl
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import uvicorn
from starlette.types import ASGIApp

from naiad_http.application import make_application, operations
from naiad_http.envelopes import EnvelopeReader
from naiad_http.heads import HeadReader
from naiad_http.infer import Inference
from naiad_http.limits import Limits
from naiad_http.listener import Listener
from naiad_http.protocol import HttpProtocol
from naiad_http.restrictions import Restrictions
from naiad_http.route_table import RouteTable
from naiad_http.site import Site

if TYPE_CHECKING:
    from naiad.server import ServerApi


def asgi_application(server: "ServerApi") -> ASGIApp:
    """The frontend as an ASGI application, for another ASGI server on the loop that `server` was started on.

    Raises InvalidArgumentError for an option of the server that makes no sense.
    """
    return _assemble(server, lambda: False)[1]


def make_listener(server: "ServerApi", stopping: Callable[[], bool], context: ssl.SSLContext | None) -> Listener:
    """A listener for that server, as its options say; `stopping` tells health checks that the end is near.

    With a `context` it speaks TLS. Raises InvalidArgumentError for an option that makes no sense.
    """
    site, application = _assemble(server, stopping)
    config = uvicorn.Config(
        application,
        http=partial(HttpProtocol, site),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
    config.load()
    config.ssl = context
    return Listener(config, site)


def _assemble(server: "ServerApi", stopping: Callable[[], bool]) -> tuple[Site, ASGIApp]:
    settings = server.settings
    restrictions = Restrictions(settings["http-restricted-api"])
    envelopes = EnvelopeReader(settings["http-header-forward-pattern"], restrictions)
    limit: int = settings["http-max-input-size"]
    inference = Inference(server, limit, settings["http-max-json-output"])
    every = operations(server, limit, stopping, inference.threads)
    site = Site(
        server.submit,
        inference,
        HeadReader(envelopes, RouteTable(every, restrictions)),
        limit,
        most_pipelined=settings["http-max-pipelined-bytes"],
        limits=Limits.of(settings),
        budget=server.bytes_in_flight,
    )
    return site, make_application(every, site, envelopes, restrictions)
