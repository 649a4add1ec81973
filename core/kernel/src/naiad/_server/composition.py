"""The composition root: makes the parts of a server from plugins and settings, and gives each what it needs."""

from collections.abc import Sequence
from dataclasses import dataclass

from naiad._lifecycle.loading import Loader
from naiad._lifecycle.models import Models
from naiad._lifecycle.preparation import Preparer
from naiad._plugins.registry import PluginRegistry
from naiad._server.frontends import Frontends
from naiad._server.services import Services
from naiad.extend import BackendSource, GateFactory, LoopRunner, ModelService
from naiad.metrics import Metrics
from naiad.options import Settings
from naiad.server import Named
from naiad.workers import ThreadKind
from naiad_config.stores import roots_of


@dataclass(frozen=True, slots=True)
class Parts:
    """What a server is made of."""

    services: Services
    gates: GateFactory | None
    models: Models
    frontends: Frontends


def compose(plugins: PluginRegistry, settings: Settings, runner: LoopRunner | None, own: Sequence[Named] = ()) -> Parts:
    """The parts of a server, none of which is started. Raises NaiadError for options and plugins that do not fit.

    `runner` runs the event loop; None where the loop stays on its thread. `own` are services of the program itself.
    """
    services = Services(plugins, settings, own)
    gates = plugins.gates(settings)
    workers = (*plugins.workers(settings, runner), ThreadKind())
    of_models = [service for service in services if isinstance(service, ModelService)]
    sources = [service for service in services if isinstance(service, BackendSource)]
    preparer = Preparer(plugins, settings, services.require, services.find(Metrics), workers, of_models, sources)
    loader = Loader(preparer, plugins, settings, gates, runner)
    roots = roots_of(settings["model-repository"], plugins.repository_scheme, settings)
    models = Models(loader, settings, roots)
    frontends = Frontends(tuple(plugins.frontends().values()))
    return Parts(services, gates, models, frontends)


def compose_preparer(plugins: PluginRegistry, settings: Settings) -> Preparer:
    """What prepares models as a server with these plugins and settings does, and loads none."""
    services = Services(plugins, settings)
    workers = (*plugins.workers(settings, None), ThreadKind())
    sources = [service for service in services if isinstance(service, BackendSource)]
    return Preparer(plugins, settings, services.require, services.find(Metrics), workers, (), sources)


def plugins_of(plugins: Sequence[object] | PluginRegistry | None) -> PluginRegistry:
    """The installed plugins for None, a registry as it is, else these and the kernel's own, with the same hooks."""
    if plugins is None or isinstance(plugins, PluginRegistry):
        return PluginRegistry.discover() if plugins is None else plugins
    from naiad import default_scheduler

    return PluginRegistry.of([*plugins, *(own for own in (default_scheduler,) if own not in plugins)])
