"""The HTTP frontend: listens when the server starts, and ends when it stops."""

import asyncio
from typing import TYPE_CHECKING

from naiad.errors import InternalError

if TYPE_CHECKING:
    from naiad import Server
    from naiad_http.listener import Listener


class HttpFrontend:
    """Speaks the Open Inference Protocol over HTTP/1.1. `address` and `port` are where it listens, once it does."""

    name = "http"

    def __init__(self) -> None:
        self.address = ""
        self.port = 0
        self._listener: Listener | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self, server: "Server") -> str:
        """Listen as the options say, and return the URL; "" with `--allow-http=false`.

        Raises UnavailableError when the port cannot be had and InvalidArgumentError for a bad option.
        """
        settings = server.settings
        if not settings["allow-http"]:
            return ""
        from naiad_http.assembly import make_listener  # uvicorn and starlette take 0.1 s to import
        from naiad_http.listener import open_socket

        listener = make_listener(server, lambda: self._stopping)
        listening = await open_socket(settings["http-address"], settings["http-port"], settings["reuse-http-port"])
        self.address, self.port = listening.getsockname()[:2]
        self._listener = listener
        self._task = asyncio.get_running_loop().create_task(listener.serve(sockets=[listening]))
        started = asyncio.ensure_future(listener.listening.wait())
        await asyncio.wait((started, self._task), return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            started.cancel()
            listening.close()
            raise InternalError("the HTTP listener ended before it listened") from self._task.exception()
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}"

    async def stop(self, grace: float) -> None:
        """Take no new connections, answer what is in flight within `grace` seconds, then close every connection."""
        self._stopping = True
        if self._listener is None or self._task is None:
            return
        self._listener.end(grace)
        await self._task
        self._listener = self._task = None
