"""The HTTP frontend: listens when the server starts, and ends when it stops."""

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
    from naiad_http.addresses import Place
    from naiad_http.listener import Listener


class HttpFrontend:
    """Speaks the Open Inference Protocol over HTTP/1.1. `address` and `port` are where it listens, once it does.

    On a unix socket the address is `unix:PATH` and the port 0.
    """

    name = "http"

    def __init__(self) -> None:
        self.address = ""
        self.port = 0
        self._place: Place | None = None
        self._listener: Listener | None = None
        self._task: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._stopping = False
        self._share: Callable[[], None] = lambda: None

    async def start(self, server: "ServerApi") -> str:
        """Listen as the options say, and return the URL; "" with `--allow-http=false`.

        Raises UnavailableError when the port cannot be had and InvalidArgumentError for a bad option.
        """
        settings = server.settings
        if not settings["allow-http"]:
            return ""
        from naiad_http.addresses import open_place
        from naiad_http.assembly import make_listener  # uvicorn and starlette take 0.1 s to import
        from naiad_http.tls import server_context
        from naiad_kit.frontends.renewal import CertificateRenewal

        refuse_shared_ports(settings)
        context = server_context(settings)
        listener = make_listener(server, lambda: self._stopping, context)
        place = await open_place(settings["http-address"], settings["http-port"], settings["reuse-http-port"])
        self.address, self.port = place.address, place.port
        self._place, self._listener = place, listener
        self._share = keep_from_children(place.port or place.address.removeprefix(UNIX))
        self._task = asyncio.get_running_loop().create_task(listener.serve(sockets=[place.listening]))
        started = asyncio.ensure_future(listener.listening.wait())
        await asyncio.wait((started, self._task), return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            started.cancel()
            place.leave()
            raise InternalError("the HTTP listener ended before it listened") from self._task.exception()
        if context is None:
            return place.url("http")
        renewal = CertificateRenewal(settings, "HTTP")
        use = partial(context.load_cert_chain, renewal.certificate, renewal.key)
        self._renewing = asyncio.get_running_loop().create_task(renewal.follow(use))
        return place.url("https")

    async def without_clients(self) -> None:
        """Answer with `Connection: close` from now on, and return as soon as no connection is open."""
        if self._listener is not None:
            self._listener.drain()
            await self._listener.without_connections()

    async def stop(self, grace: float) -> None:
        """Take no new connections, answer what is in flight within `grace` seconds, then close every connection."""
        self._stopping = True
        if self._renewing is not None:
            self._renewing.cancel()
        if self._listener is None or self._task is None or self._place is None:
            return
        self._listener.end(grace)
        await self._task
        self._place.leave()
        self._share()
        self._listener = self._task = self._place = None
