"""Starting and stopping the frontends of a server."""

import asyncio
import logging
from collections.abc import Iterable

from naiad.errors import NaiadError, PluginError
from naiad.foreign_errors import describe_error
from naiad.frontend import Frontend, KnowsClients
from naiad.server import ServerApi

_logger = logging.getLogger("naiad")


class Frontends:
    """The frontends that listen."""

    def __init__(self) -> None:
        self._started: list[Frontend] = []

    async def start(self, frontends: Iterable[Frontend], server: ServerApi) -> None:
        """Let each one listen. Raises what one raises, as PluginError when it is no NaiadError."""
        for frontend in frontends:
            try:
                where = await frontend.start(server)
            except NaiadError:
                raise
            except Exception as error:
                _logger.exception("starting the %s frontend failed", frontend.name)
                raise PluginError(f"the {frontend.name} frontend cannot start: {describe_error(error)}") from error
            self._started.append(frontend)
            if where:
                _logger.info("%s frontend listens at %s", frontend.name, where)

    async def without_clients(self, seconds: float) -> None:
        """Return when no client is connected, or after so many seconds; frontends that cannot say so do not count."""
        waits = [
            asyncio.ensure_future(frontend.without_clients())
            for frontend in self._started
            if isinstance(frontend, KnowsClients)
        ]
        if waits:
            _, late = await asyncio.wait(waits, timeout=seconds)
            for wait in late:
                wait.cancel()

    async def stop(self, grace: float) -> None:
        """End all of them at the same time, each within `grace` seconds."""
        await asyncio.gather(*(_stop(frontend, max(0.0, grace)) for frontend in self._started))


async def _stop(frontend: Frontend, grace: float) -> None:
    try:
        await frontend.stop(grace)
    except Exception:
        _logger.exception("stopping the %s frontend failed", frontend.name)
