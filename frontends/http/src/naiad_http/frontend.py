"""The HTTP frontend: starts and stops its listener with the server."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from naiad.errors import InternalError
from naiad_kit.frontends.addresses import UNIX
from naiad_kit.frontends.forking import keep_from_children
from naiad_kit.frontends.ports import refuse_shared_ports

if TYPE_CHECKING:
    from naiad.server import ServerApi
    from naiad_http.listener import Listener
    from naiad_kit.frontends.embedding import AsgiApp
    from naiad_kit.frontends.endpoints import Endpoint


class HttpFrontend:
    """Serves the Open Inference Protocol over HTTP/1.1. `address` and `port` are set once it listens.

    On a unix socket the address is `unix:PATH` and the port 0.
    """

    name = "http"

    def __init__(self) -> None:
        self.address = ""
        self.port = 0
        self._endpoint: Endpoint | None = None
        self._listener: Listener | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._stopping = False
        self._share: Callable[[], None] = lambda: None

    async def start(self, server: "ServerApi") -> str:
        """Listen as configured by the options, and return the URL; "" with `--allow-http=false`.

        Raises UnavailableError if the port is not available and InvalidArgumentError for an invalid option.
        """
        settings = server.settings
        if not settings["allow-http"]:
            return ""
        from naiad_http.assembly import make_listener  # uvicorn and starlette take 0.1 s to import
        from naiad_http.tls import server_context
        from naiad_kit.frontends.endpoints import open_endpoint
        from naiad_kit.frontends.renewal import CertificateRenewal
        from naiad_kit.frontends.tls import load_pair

        refuse_shared_ports(settings)
        context = server_context(settings)
        listener = make_listener(server, lambda: self._stopping, context)
        endpoint = await open_endpoint(
            "HTTP", settings["http-address"], settings["http-port"], settings["reuse-http-port"]
        )
        self.address, self.port = endpoint.address, endpoint.port
        self._endpoint, self._listener = endpoint, listener
        self._share = keep_from_children(endpoint.port or endpoint.address.removeprefix(UNIX))
        try:
            await listener.open(endpoint.listening)
        except InternalError:
            endpoint.close()
            raise
        if context is None:
            return endpoint.url("http")
        renewal = CertificateRenewal(settings, "HTTP")
        self._renewing = asyncio.get_running_loop().create_task(renewal.follow(partial(load_pair, context)))
        return endpoint.url("https")

    def application(self, server: "ServerApi") -> "AsgiApp":
        """See `EmbeddedHttp`: the application without this frontend's listener."""
        from naiad_http.assembly import asgi_application

        return asgi_application(server)

    async def without_clients(self) -> None:
        """Send `Connection: close` in each response from now on, and return as soon as no connection is open."""
        if self._listener is not None:
            self._listener.drain()
            await self._listener.without_connections()

    async def stop(self, grace: float) -> None:
        """Accept no new connections, finish requests in flight within `grace` seconds, then close all connections."""
        self._stopping = True
        if self._renewing is not None:
            self._renewing.cancel()
        if self._listener is None or self._endpoint is None:
            return
        await self._listener.close(grace)
        self._endpoint.close()
        self._share()
        self._listener = self._endpoint = None
