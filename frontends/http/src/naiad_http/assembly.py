"""Assembly of the frontend: the connection context of one server, its ASGI application and its listener."""

import ssl
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp

from naiad_http.access_lines import LoggedProtocol
from naiad_http.application import make_application, operations, paths_on_other_ports
from naiad_http.connection_context import ConnectionContext
from naiad_http.cors import Preflights, cors_headers
from naiad_http.heads import HeadReader
from naiad_http.infer import Inference
from naiad_http.limits import Limits
from naiad_http.listener import Listener
from naiad_http.protocol import HttpProtocol
from naiad_http.request_heads import RequestHeadReader
from naiad_http.restrictions import Restrictions
from naiad_http.route_table import RouteTable
from naiad_kit.access_log import AccessLog, access_log_of
from naiad_kit.frontends.api_keys import api_keys_of
from naiad_kit.frontends.body_memory import body_memory_of
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_kit.frontends.embedded_server import embedded_config

if TYPE_CHECKING:
    from naiad.server import ServerApi


def asgi_application(server: "ServerApi") -> ASGIApp:
    """The frontend as an ASGI application, for another ASGI server on the loop that `server` was started on.

    Raises InvalidArgumentError for an invalid option of the server.
    """
    return _assemble(server, lambda: False)[1]


def make_listener(server: "ServerApi", stopping: Callable[[], bool], tls: ssl.SSLContext | None) -> Listener:
    """A listener for that server, configured by its options; health checks report not ready when `stopping()`.

    With `tls` it serves HTTPS. Raises InvalidArgumentError for an invalid option.
    """
    context, application = _assemble(server, stopping)
    access = access_log_of(server)
    protocol = partial(HttpProtocol, context) if access is None else partial(_protocol, access, context)
    origin = server.settings["http-allow-origin"]
    config = embedded_config(
        Preflights(application) if origin else application, http=protocol, headers=cors_headers(origin)
    )
    config.ssl = tls
    return Listener(config, context)


def _protocol(access: AccessLog, context: ConnectionContext, *others: Any, **named: Any) -> HttpProtocol:
    """One connection: with lines in the access log, if that is switched on now."""
    if access.enabled:
        return LoggedProtocol(access, context, *others, **named)
    return HttpProtocol(context, *others, **named)


def _assemble(server: "ServerApi", stopping: Callable[[], bool]) -> tuple[ConnectionContext, ASGIApp]:
    settings = server.settings
    keys = api_keys_of(server)
    restrictions = Restrictions(settings["http-restricted-api"], keys)
    request_heads = RequestHeadReader(settings["http-header-forward-pattern"], restrictions)
    limit: int = settings["http-max-input-size"]
    inference = Inference(server, limit, settings["http-max-json-output"])
    every = operations(server, limit, stopping, inference.threads)
    heads = HeadReader(request_heads, RouteTable(every, restrictions))
    if keys is not None:
        keys.on_change(heads.forget)
    context = ConnectionContext(
        server.submit,
        inference,
        heads,
        limit,
        most_pipelined=settings["http-max-pipelined-bytes"],
        limits=Limits.of(settings),
        budget=server.service(ByteBudget),
        reserve=body_memory_of(server),
    )
    return context, make_application(every, context, request_heads, restrictions, paths_on_other_ports(settings))
