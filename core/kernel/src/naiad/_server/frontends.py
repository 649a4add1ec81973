"""Starting and stopping the frontends of a server."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from naiad._server.services import start_part
from naiad.foreign_errors import logged
from naiad.frontend import Frontend, KnowsClients
from naiad.server import ServerApi

_logger = logging.getLogger("naiad")


class Frontends:
    """The frontends of a server; those that were started are stopped. `addresses` has where each listens, by name."""

    def __init__(self, frontends: Sequence[Frontend]) -> None:
        self._frontends = frontends
        self._started: list[Frontend] = []
        self.addresses: dict[str, str] = {}

    async def start(self, server: ServerApi) -> None:
        """Start each one. Raises what one raises, as PluginError when it is no NaiadError."""
        for frontend in self._frontends:
            address = await start_part(frontend, f"{frontend.name} frontend", server)
            self._started.append(frontend)
            if address:
                self.addresses[frontend.name] = address
        if self.addresses:
            _logger.info("live while the models load: %s", ", ".join(map(" ".join, self.addresses.items())))

    async def without_clients(self, seconds: float) -> None:
        """Return when no client is connected, or after so many seconds; frontends that cannot say so do not count."""
        waits = [
            asyncio.ensure_future(_contained("waiting for the clients of a frontend", frontend.without_clients))
            for frontend in self._started
            if isinstance(frontend, KnowsClients)
        ]
        if waits:
            _, late = await asyncio.wait(waits, timeout=seconds)
            for wait in late:
                wait.cancel()

    async def stop(self, grace: float) -> None:
        """Stop all of them at the same time, each within `grace` seconds."""
        stops = {frontend.name: partial(frontend.stop, max(0.0, grace)) for frontend in self._started}
        await asyncio.gather(*(_contained(f"stopping the {name} frontend", stop) for name, stop in stops.items()))


async def _contained(step: str, act: Callable[[], Awaitable[None]]) -> None:
    with logged(step):
        await act()
