"""The plugin registry: what the plugins of one server contribute, by kind and name, and what to install besides."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from naiad._plugins.contributions import Contributions
from naiad._plugins.discovery import Plugin, Source, installed_plugins, listed_plugins
from naiad._plugins.known_plugins import names_of, needs_of, where_to_get
from naiad.errors import NotFoundError, PluginError

if TYPE_CHECKING:
    import asyncio

    from naiad.backend import Backend, ModelContext
    from naiad.cache import CacheFactory
    from naiad.extend import GateFactory, LoopRunner, RequestStage, Service, StageContext, WorkerKind
    from naiad.frontend import Frontend
    from naiad.options import Option, Settings
    from naiad.repositories import RepositoryAgent, RepositoryScheme
    from naiad.scheduler import SchedulerFactory
    from naiad.servables import ServableFactory
    from naiad.warmup import Warmup
    from naiad_config import ModelConfig

_T = TypeVar("_T")
_Named = Iterable[tuple[str, _T]]


class PluginRegistry:
    """The plugins of one server. There is no global one: every server, command and test makes its own.

    A plugin that cannot be imported, has a hook that is misspelt or raises in one at start-up is skipped; it fails
    only those who need it. `plugins` has a report for each plugin, `warnings` a sentence for each that was skipped.
    """

    def __init__(self, sources: Iterable[Source]) -> None:
        loaded = [source.load() for source in sources]
        self._loaded = [each for each in loaded if isinstance(each, Plugin)]
        self.plugins = tuple(each.report if isinstance(each, Plugin) else each for each in loaded)

    @classmethod
    def discover(cls) -> "PluginRegistry":
        """The installed plugins, in the order of their names. Raises PluginError for two of one name."""
        return cls(installed_plugins())

    @classmethod
    def of(cls, plugins: Sequence[object]) -> "PluginRegistry":
        """Exactly these plugins, modules or objects with hooks. Raises PluginError when one is listed twice."""
        return cls(listed_plugins(plugins))

    def warnings(self) -> tuple[str, ...]:
        """One sentence for each plugin that was skipped."""
        return tuple(f"plugin {report} is skipped: {report.skipped}" for report in self.plugins if report.skipped)

    def check(self) -> None:
        """Raise PluginError when two plugins contribute something of one name."""
        first = (self.options, self.backends, self.schedulers, self.servables, self.frontends, self.caches)
        for lookup in (*first, self.repository_schemes, self.repository_agents):
            lookup()

    # Contributions of start-up; raise PluginError when two share a name

    def options(self) -> "tuple[Option, ...]":
        """The kernel's options and those of the plugins."""
        from naiad._plugins.kernel_options import KERNEL_OPTIONS

        own = {f"--{option.name}": option for option in KERNEL_OPTIONS}
        return tuple(self._by_name("option", lambda each: [(f"--{it.name}", it) for it in each.options], own).values())

    def backends(self) -> "Mapping[str, Backend]":
        """Every backend, by its name and by its aliases."""
        return self._by_name(
            "backend",
            lambda each: [(name, it) for it in each.backends for name in (it.traits.name, *it.traits.aliases)],
        )

    def schedulers(self) -> "tuple[SchedulerFactory, ...]":
        """Every kind of scheduler, of which no two serve one scheduling choice."""
        self._by_name("scheduler for", lambda each: [(it.choice, it) for it in each.schedulers if it.choice])
        return tuple(self._by_name("scheduler", lambda each: [(it.name, it) for it in each.schedulers]).values())

    def frontends(self) -> "Mapping[str, Frontend]":
        """Every frontend by name."""
        return self._by_name("frontend", lambda each: [(it.name, it) for it in each.frontends])

    def caches(self) -> "Mapping[str, CacheFactory]":
        """Every kind of cache by name."""
        return self._by_name("cache", lambda each: [(it.name, it) for it in each.caches])

    def servables(self) -> "Mapping[str, ServableFactory]":
        """Every factory of servables by name."""
        return self._by_name("servable", lambda each: [(it.name, it) for it in each.servables])

    def repository_schemes(self) -> "Mapping[str, RepositoryScheme]":
        """Every kind of model repository that is not a folder, by the scheme of its URLs."""
        return self._by_name("repository scheme", lambda each: [(it.name, it) for it in each.repositories])

    def repository_agents(self) -> "Mapping[str, RepositoryAgent]":
        """Every repository agent by name."""
        return self._by_name("repository agent", lambda each: [(it.name, it) for it in each.repository_agents])

    # One contribution; raise NotFoundError with what is installed and what to install

    def backend(self, name: str) -> "Backend":
        """The backend of that name or alias."""
        return self.find("backend", name, self.backends())

    def repository_scheme(self, name: str) -> "RepositoryScheme":
        """The kind of model repository whose URLs have that scheme."""
        return self.find("repository scheme", name, self.repository_schemes())

    def scheduler(self, name: str) -> "SchedulerFactory":
        """The kind of scheduler of that name, or for that scheduling choice (`dynamic_batching`)."""
        factories = self.schedulers()
        by_choice = {factory.choice: factory for factory in factories if factory.choice}
        return self.find("scheduler", name, by_choice | {factory.name: factory for factory in factories})

    def servable(self, config: "ModelConfig") -> "ServableFactory | None":
        """The factory that serves a configuration, None where a backend is to serve it.

        Raises PluginError when several claim it, NotFoundError with what to install where a missing one is needed.
        """
        servables = self.servables()
        claiming = [each for each in servables.values() if each.claims(config)]
        if len(claiming) > 1:
            names = " and ".join(f"'{each.name}'" for each in claiming)
            raise PluginError(f"the servables {names} both claim model '{config.name}'; uninstall one of them")
        needed = [self.find("servable", need.name, servables) for need in needs_of(config, "servable") if not claiming]
        return next(iter(claiming or needed), None)

    # Hooks of a server and of a model; raise NaiadError as `Plugin.call`

    def services(self, settings: "Settings") -> "Mapping[str, Service]":
        """New services of all plugins, by name. Raises PluginError when two share one."""
        return self._named("service", "naiad_services", settings=settings)

    def gates(self, settings: "Settings") -> "GateFactory | None":
        """What decides when instances may execute, None where no plugin limits anything; PluginError for two."""
        return self._named("gate", "naiad_gates", "execution", settings=settings).get("execution")

    def workers(self, settings: "Settings", runner: "LoopRunner | None") -> "tuple[WorkerKind, ...]":
        """New kinds of worker, for a server that `runner` runs. Raises PluginError when two share a name."""
        return tuple(self._named("kind of worker", "naiad_workers", settings=settings, runner=runner).values())

    def loop_runner(self, loop: "asyncio.AbstractEventLoop", settings: "Settings") -> "LoopRunner | None":
        """What runs the event loop of the process, None where no plugin does. Raises PluginError for two."""
        return self._named("runner", "naiad_runners", "event loop", loop=loop, settings=settings).get("event loop")

    def warmup(self, context: "ModelContext") -> "list[Warmup]":
        """The warm-ups of all plugins for that model version."""
        return [warmup for _, warmup in self._call("naiad_warmup", context=context)]

    def stages(self, context: "StageContext") -> "list[RequestStage]":
        """The request stages of all plugins for that model version."""
        return [stage for _, stage in self._call("naiad_stages", context=context)]

    def _named(self, kind: str, hook: str, name: str = "", **arguments: object) -> dict[str, Any]:
        """What a hook returns, by the `name` that there may be one of, else by the names of the objects."""
        return _unique(kind, ((plugin, name or each.name, each) for plugin, each in self._call(hook, **arguments)))

    def _call(self, hook: str, **arguments: object) -> "Iterator[tuple[Plugin, Any]]":
        return ((plugin, each) for plugin in self._loaded for each in plugin.call(hook, **arguments))

    # What no plugin contributes

    def missing_parameters(self, stages: "Sequence[RequestStage]") -> dict[str, str]:
        """The request parameters of known stages that are not among these, each with how to get its stage."""
        present = {stage.parameter for stage in stages}
        return {name: " ".join(self.where_to_get("parameter", name)) for name in names_of("parameter") - present}

    def unmet_needs(self, config: "ModelConfig") -> list[str]:
        """A sentence for each section of a configuration that no installed plugin serves, and that is ignored then."""
        offered = {("option", option.name) for plugin in self._loaded for option in plugin.contributions.options}
        offered |= {("warmup", "samples") for plugin in self._loaded if "warmup" in plugin.contributions.later}
        unmet = [need for need in needs_of(config, "option", "warmup") if (need.kind, need.name) not in offered]
        asks = f"model '{config.name}' asks for"
        return [" ".join([f"{asks} {need.noun}.", *self.where_to_get(need.kind, need.name)]) for need in unmet]

    def where_to_get(self, kind: str, name: str) -> list[str]:
        """Sentences with the next step for a thing that no plugin brings: what to install, else what was skipped."""
        if advice := self.what_to_install(kind, name):
            return [advice]
        return [f"Plugin {report} was skipped: {report.skipped}" for report in self.plugins if report.skipped]

    def what_to_install(self, kind: str, name: str) -> str:
        """A sentence with the distribution that contributes a thing, "" when no known distribution does."""
        return where_to_get(kind, name, {report.distribution: report.skipped for report in self.plugins})

    def _by_name(
        self, kind: str, named: Callable[[Contributions], _Named[_T]], own: Mapping[str, _T] | None = None
    ) -> dict[str, _T]:
        every = ((plugin, name, each) for plugin in self._loaded for name, each in named(plugin.contributions))
        return _unique(kind, every, own)

    def find(self, kind: str, name: str, named: Mapping[str, _T]) -> _T:
        """That contribution."""
        if name in named:
            return named[name]
        message = f"no plugin offers the {kind} '{name}'; installed {kind}s: {', '.join(sorted(named)) or 'none'}."
        raise NotFoundError(" ".join([message, *self.where_to_get(kind, name)]))


def _unique(
    kind: str, objects: "Iterable[tuple[Plugin, str, _T]]", own: Mapping[str, _T] | None = None
) -> dict[str, _T]:
    """The objects by name, after the kernel's `own`. Raises PluginError, naming both plugins, for two of one name."""
    by_name = dict(own or {})
    owners = dict.fromkeys(by_name, "the kernel")
    for plugin, name, each in objects:
        owner = f"plugin {plugin.report}"
        if name in by_name:
            both = f"{owner} offers" if owners[name] == owner else f"{owners[name]} and {owner} both offer"
            step = "fix it" if owners[name] == owner else "uninstall one of them"
            raise PluginError(f"{both} the {kind} '{name}'; {step}")
        by_name[name], owners[name] = each, owner
    return by_name
