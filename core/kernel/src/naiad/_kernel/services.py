"""The services of a server: found by their kind, started before the models and stopped after them."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping

from naiad._kernel.plugins import PluginRegistry
from naiad._kernel.stop_steps import StopSteps
from naiad.errors import NaiadError, PluginError, UnsupportedError
from naiad.extend import Service
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.options import Settings
from naiad.server import ServerApi, ServiceT

_logger = logging.getLogger("naiad")

_SPARE_SECONDS = 0.5
"""How much longer than its own limit a service may take to stop before it is given up."""


class Services:
    """The services that plugins bring, by name. Raises NaiadError when one cannot be made."""

    def __init__(self, plugins: PluginRegistry, settings: Settings) -> None:
        self._plugins = plugins
        self._by_name: Mapping[str, Service] = plugins.services(settings)
        self._started: list[Service] = []

    def __iter__(self) -> Iterator[Service]:
        return iter(self._by_name.values())

    def find(self, kind: type[ServiceT]) -> ServiceT | None:
        """The service of that kind, None where no plugin brings it. Raises PluginError for one of another kind."""
        found = self._by_name.get(kind.name)
        if found is not None and not isinstance(found, kind):
            raise PluginError(f"the service '{kind.name}' is a {type(found).__name__}, which is not a {kind.__name__}")
        return found

    def require(self, kind: type[ServiceT]) -> ServiceT:
        """The service of that kind. Raises UnsupportedError, with what to install, where no plugin brings it."""
        found = self.find(kind)
        if found is None:
            advice = self._plugins.where_to_get("service", kind.name)
            raise UnsupportedError(" ".join([f"this server has no service '{kind.name}'.", *advice]))
        return found

    async def start(self, server: ServerApi) -> None:
        """Start all, in the order of their plugins. Raises what one raises, as PluginError when it is no NaiadError."""
        for service in self._by_name.values():
            self._started.append(service)  # one that fails half-way is stopped too
            try:
                await service.start(server)
            except (NaiadError, asyncio.CancelledError):
                raise
            except BaseException as error:
                raise_interrupt(error)
                _logger.exception("starting the service '%s' failed", service.name)
                raise PluginError(f"the service '{service.name}' cannot start: {describe_error(error)}") from error

    async def stop(self, steps: StopSteps, seconds: Callable[[], float]) -> None:
        """Stop those that were started, the last one first, each within the `seconds` that are left when it begins."""
        while self._started:
            service = self._started.pop()
            limit = seconds()
            await steps.run(f"the service '{service.name}'", service.stop(limit), limit + _SPARE_SECONDS, None)
