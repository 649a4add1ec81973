"""The services of a server: found by their kind, started before the models and stopped after them."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from naiad._plugins.registry import PluginRegistry
from naiad._server.stop_steps import StopSteps
from naiad.errors import PluginError, UnsupportedError
from naiad.extend import Service
from naiad.foreign_errors import contained
from naiad.frontend import Frontend
from naiad.options import Settings
from naiad.server import Named, ServerApi, ServiceT

SPARE_SECONDS = 0.5
"""How much longer than its limit a step of the stop may take before it is given up."""


class Services:
    """The services that plugins bring, by name. Raises NaiadError when one cannot be made.

    `own` are those of the program, which starts and stops them itself.
    """

    def __init__(self, plugins: PluginRegistry, settings: Settings, own: Sequence[Named] = ()) -> None:
        self._plugins = plugins
        self._settings = settings
        self._own = {service.name: service for service in own}
        self._by_name: Mapping[str, Service] = plugins.services(settings)
        self._started: list[Service] = []

    def __iter__(self) -> Iterator[Service]:
        return iter(self._by_name.values())

    def find(self, kind: type[ServiceT]) -> ServiceT | None:
        """The service of that kind, None where no plugin brings it. Raises PluginError for one of another kind."""
        service = self._by_name.get(kind.name) or self._own.get(kind.name)
        if service is not None and not isinstance(service, kind):
            kinds = f"a {type(service).__name__}, which is not a {kind.__name__}"
            raise PluginError(f"the service '{kind.name}' is {kinds}")
        return service

    def require(self, kind: type[ServiceT]) -> ServiceT:
        """The service of that kind. Raises UnsupportedError, with what to install, where no plugin brings it."""
        service = self.find(kind)
        make: Callable[[Settings], ServiceT] | None = getattr(kind, "of_settings", None)
        if service is None and make is not None:
            service = self._own[kind.name] = make(self._settings)
        if service is None:
            advice = self._plugins.where_to_get("service", kind.name)
            raise UnsupportedError(" ".join([f"this server has no service '{kind.name}'.", *advice]))
        return service

    async def start(self, server: ServerApi) -> None:
        """Start all, in the order of their plugins. Raises what one raises, as PluginError when it is no NaiadError."""
        for service in self._by_name.values():
            self._started.append(service)  # one that fails half-way is stopped too
            await start_part(service, f"service '{service.name}'", server)

    async def stop(self, steps: StopSteps, seconds: Callable[[], float]) -> None:
        """Stop those that were started, the last one first, each within the `seconds` that are left when it begins."""
        while self._started:
            service = self._started.pop()
            limit = seconds()
            await steps.run(f"the service '{service.name}'", _stop(service, limit), limit + SPARE_SECONDS, None)


async def start_part(part: Service | Frontend, label: str, server: ServerApi) -> str | None:
    """Start a service or a frontend. Raises PluginError for any error that is no NaiadError."""
    with contained(f"starting the {label}", lambda reason: PluginError(f"the {label} cannot start: {reason}")):
        return await part.start(server)


async def _stop(service: Service, seconds: float) -> None:
    await service.stop(seconds)  # awaited by what contains its errors, also those of a plain function
