"""Plugins: found through their entry points, registered one by one, and asked once for what they offer."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from naiad import hookspecs
from naiad._kernel.known_plugins import KNOWN_PLUGINS, where_to_get
from naiad._kernel.offers import Offer, Offered, checked
from naiad.errors import NaiadError, NotFoundError, PluginError
from naiad_config.normalisation import is_ensemble

if TYPE_CHECKING:
    import asyncio

    from naiad._kernel.stages import OfferedStages
    from naiad.backend import Backend, ModelContext
    from naiad.cache import CacheFactory
    from naiad.extend import GateFactory, LoopRunner, RequestStage, Service, StageContext, WorkerKind
    from naiad.frontend import Frontend
    from naiad.options import Option, Settings
    from naiad.scheduler import SchedulerFactory
    from naiad.servables import ServableFactory
    from naiad.warmup import WarmupSample
    from naiad_config import ModelConfig

GROUP = "naiad"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PluginReport:
    """One plugin: its entry point's name, its distribution with version ("" when it was passed as an object).

    `offers` says what it brings; `skipped` why it is not in use, "" when it is.
    """

    name: str
    distribution: str = ""
    version: str = ""
    offers: tuple[Offer, ...] = ()
    skipped: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of things it offers, each once, such as backend, cache or options."""
        return tuple(dict.fromkeys(offer.kind for offer in self.offers))

    def __str__(self) -> str:
        return f"'{self.name}' ({self.distribution} {self.version})" if self.distribution else f"'{self.name}'"


@dataclass(frozen=True, slots=True)
class _Source:
    """A plugin before it is registered: an object, or an entry point that is still to be imported."""

    report: PluginReport
    plugin: object = None
    entry_point: metadata.EntryPoint | None = None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A plugin in use: its report, the objects it handed out, and its hooks."""

    report: PluginReport
    offered: Offered
    hooks: pluggy.PluginManager


class PluginRegistry:
    """The plugins of one server. There is no global one: every server, command and test makes its own.

    A plugin that cannot be imported, has a hook that is misspelt or raises in one at start-up is skipped; it fails
    only those who need it. `warnings` has a sentence for each such plugin.
    """

    def __init__(self, sources: Iterable[_Source]) -> None:
        self._loaded: list[_Loaded] = []
        self.plugins = tuple(self._load(source) for source in sources)

    @classmethod
    def discover(cls) -> "PluginRegistry":
        """The plugins that are installed, in the order of their names.

        Raises PluginError when two distributions have a plugin of one name.
        """
        return cls(_installed(metadata.entry_points(group=GROUP)))

    @classmethod
    def of(cls, plugins: Sequence[object]) -> "PluginRegistry":
        """Exactly these plugins, modules or objects with hook implementations.

        Raises PluginError when one is listed twice.
        """
        return cls(_listed(plugins))

    def warnings(self) -> tuple[str, ...]:
        """One sentence for each plugin that was skipped."""
        return tuple(f"plugin {report} is skipped: {report.skipped}" for report in self.plugins if report.skipped)

    def check(self) -> None:
        """Raise PluginError when two plugins offer something of one name."""
        for named in (self.options, self.backends, self.schedulers, self.servables, self.frontends, self.caches):
            named()

    def options(self) -> "tuple[Option, ...]":
        """The kernel's options and those of the plugins. Raises PluginError when two share a name."""
        from naiad._kernel.kernel_options import KERNEL_OPTIONS

        own = {f"--{option.name}": option for option in KERNEL_OPTIONS}
        return tuple(self._by_name("option", lambda each: [(f"--{it.name}", it) for it in each.options], own).values())

    def backends(self) -> "Mapping[str, Backend]":
        """Every backend, by its name and by its aliases. Raises PluginError when two share one of these."""

        def named(offered: Offered) -> "list[tuple[str, Backend]]":
            return [(name, it) for it in offered.backends for name in (it.traits.name, *it.traits.aliases)]

        return self._by_name("backend", named)

    def schedulers(self) -> "tuple[SchedulerFactory, ...]":
        """Every kind of scheduler. Raises PluginError when two share a name or serve one scheduling choice."""
        self._by_name("scheduler for", lambda offered: [(it.choice, it) for it in offered.schedulers if it.choice])
        return tuple(self._by_name("scheduler", lambda offered: [(it.name, it) for it in offered.schedulers]).values())

    def frontends(self) -> "Mapping[str, Frontend]":
        """Every frontend by name. Raises PluginError when two share one."""
        return self._by_name("frontend", lambda offered: [(it.name, it) for it in offered.frontends])

    def caches(self) -> "Mapping[str, CacheFactory]":
        """Every kind of cache by name. Raises PluginError when two share one."""
        return self._by_name("cache", lambda offered: [(it.name, it) for it in offered.caches])

    def cache(self, name: str) -> "CacheFactory":
        """The kind of cache of that name. Raises NotFoundError with what is installed and what to install."""
        return self._find("cache", name, self.caches())

    def backend(self, name: str) -> "Backend":
        """The backend of that name or alias. Raises NotFoundError with what is installed and what to install."""
        return self._find("backend", name, self.backends())

    def frontend(self, name: str) -> "Frontend":
        """The frontend of that name. Raises NotFoundError with what is installed and what to install."""
        return self._find("frontend", name, self.frontends())

    def scheduler(self, wanted: str) -> "SchedulerFactory":
        """The kind of scheduler of that name, or for that scheduling choice (`dynamic_batching`).

        Raises NotFoundError with what is installed and what to install.
        """
        factories = self.schedulers()
        by_choice = {factory.choice: factory for factory in factories if factory.choice}
        return self._find("scheduler", wanted, by_choice | {factory.name: factory for factory in factories})

    def servables(self) -> "Mapping[str, ServableFactory]":
        """Every factory of servables by name. Raises PluginError when two share one."""
        return self._by_name("servable", lambda offered: [(it.name, it) for it in offered.servables])

    def servable(self, config: "ModelConfig") -> "ServableFactory | None":
        """The factory that serves a configuration, None where a backend is to serve it.

        Raises PluginError when several claim it, NotFoundError with what to install for an ensemble that none claims.
        """
        servables = self.servables()
        claiming = [each for each in servables.values() if each.claims(config)]
        if len(claiming) > 1:
            names = " and ".join(f"'{each.name}'" for each in claiming)
            raise PluginError(f"the servables {names} both claim model '{config.name}'; uninstall one of them")
        if not claiming and is_ensemble(config):
            return self._find("servable", "ensemble", servables)
        return claiming[0] if claiming else None

    def services(self, settings: "Settings") -> "Mapping[str, Service]":
        """New services of all plugins, by name. Raises PluginError when two share one.

        Raises what a plugin raises to refuse an option; an error that is no NaiadError becomes a PluginError naming it.
        """
        made = self._make("services", settings=settings)
        return _unique("service", ((loaded, each.name, each) for loaded, each in made))

    def gates(self, settings: "Settings") -> "GateFactory | None":
        """What decides when instances may execute, None where no plugin limits anything.

        Raises PluginError when two plugins do, and otherwise as `services`.
        """
        made = self._make("gates", settings=settings)
        return _unique("gate", ((loaded, "execution", each) for loaded, each in made)).get("execution")

    def workers(self, settings: "Settings", runner: "LoopRunner | None") -> "tuple[WorkerKind, ...]":
        """New kinds of worker of all plugins, for a server that `runner` runs. Raises as `services`."""
        made = self._make("workers", settings=settings, runner=runner)
        return tuple(_unique("kind of worker", ((loaded, each.name, each) for loaded, each in made)).values())

    def loop_runner(self, loop: "asyncio.AbstractEventLoop", settings: "Settings") -> "LoopRunner | None":
        """What runs the event loop of the process, None where no plugin does. Raises as `gates`."""
        made = self._make("runners", loop=loop, settings=settings)
        return _unique("runner", ((loaded, "event loop", each) for loaded, each in made)).get("event loop")

    def _make(self, kind: str, **arguments: object) -> "Iterator[tuple[_Loaded, Any]]":
        """What the hook `naiad_<kind>` of each plugin makes."""
        hook = f"naiad_{kind}"
        for loaded in self._loaded:
            try:
                things = checked(hook, _answers(hook, getattr(loaded.hooks.hook, hook)(**arguments)))
            except PluginError as error:
                raise PluginError(f"plugin {loaded.report}: {error}") from error
            except NaiadError:
                raise
            except (Exception, SystemExit) as error:
                raise PluginError(f"the {kind} of plugin {loaded.report} cannot be made: {_told(error)}") from error
            yield from ((loaded, thing) for thing in things)

    def warmup(self, context: "ModelContext") -> "list[WarmupSample]":
        """The samples of all plugins for that model version.

        Raises what a plugin raises to fail the load; an error that is no NaiadError becomes a PluginError naming it.
        """
        samples: list[WarmupSample] = []
        for loaded in self._loaded:
            try:
                samples.extend(_answers("naiad_warmup", loaded.hooks.hook.naiad_warmup(context=context)))
            except NaiadError:
                raise
            except Exception as error:
                raise PluginError(f"the warmup of plugin {loaded.report} raised {_told(error)}") from error
        return samples

    def stages(self, context: "StageContext") -> "OfferedStages":
        """The request stages of all plugins for that model version.

        Raises what a plugin raises to fail the load; an error that is no NaiadError becomes a PluginError naming it.
        """
        from naiad._kernel.stages import OfferedStages

        found: list[RequestStage] = []
        for loaded in self._loaded:
            try:
                answers = _answers("naiad_stages", loaded.hooks.hook.naiad_stages(context=context))
                found.extend(checked("naiad_stages", answers))
            except NaiadError:
                raise
            except (Exception, SystemExit) as error:
                raise PluginError(f"the request stages of plugin {loaded.report} raised {_told(error)}") from error
        offered = {stage.parameter for stage in found}
        missing = {name for plugin in KNOWN_PLUGINS for name in plugin.parameters} - offered
        return OfferedStages(found, {name: " ".join(self.where_to_get("parameter", name)) for name in missing})

    def _by_name(
        self, kind: str, named: Callable[[Offered], Iterable[tuple[str, _T]]], own: Mapping[str, _T] | None = None
    ) -> dict[str, _T]:
        """What all plugins offered at start-up of a kind, after the kernel's `own`. Raises PluginError for a clash."""
        every = ((loaded, name, thing) for loaded in self._loaded for name, thing in named(loaded.offered))
        return _unique(kind, every, own)

    def _find(self, kind: str, name: str, found: Mapping[str, _T]) -> _T:
        if name in found:
            return found[name]
        installed = ", ".join(sorted(found)) or "none"
        told = f"no plugin offers the {kind} '{name}'; installed {kind}s: {installed}."
        raise NotFoundError(" ".join([told, *self.where_to_get(kind, name)]))

    def where_to_get(self, kind: str, name: str) -> list[str]:
        """Sentences with the next step for a thing that no plugin offers: what to install, else what was skipped."""
        advice = self.what_to_install(kind, name)
        skipped = [f"Plugin {report} was skipped: {report.skipped}" for report in self.plugins if report.skipped]
        return [advice] if advice else skipped

    def what_to_install(self, kind: str, name: str) -> str:
        """A sentence with the distribution that offers a thing, "" when no known distribution does."""
        return where_to_get(kind, name, {report.distribution: report.skipped for report in self.plugins})

    def _load(self, source: _Source) -> PluginReport:
        """Import the plugin, check its hooks and ask it for what it offers; what goes wrong is the report's reason."""
        try:
            plugin = source.entry_point.load() if source.entry_point is not None else source.plugin
            hooks = _hooks_of(plugin, source.report.name)
            offered = _ask(hooks)
        except (Exception, SystemExit) as error:  # noqa: BLE001 whatever a broken plugin does, the others go on
            return replace(source.report, skipped=_told(error))
        report = replace(source.report, offers=offered.offers(source.report.name))
        self._loaded.append(_Loaded(report, offered, hooks))
        return report


def _hooks_of(plugin: object, name: str) -> pluggy.PluginManager:
    """The plugin in a hook caller of its own, so that what it answers or breaks is known to be its own.

    Raises PluginError for a hook that does not exist, and pluggy's own error for one with wrong arguments: pluggy lets
    the first pass until `check_pending`, whose message names neither the nearest hook nor the others.
    """
    hooks = pluggy.PluginManager(GROUP)
    hooks.add_hookspecs(hookspecs)
    hooks.register(plugin, name)
    known = sorted(hook for hook in vars(hookspecs) if hook.startswith("naiad_"))
    for hook, caller in vars(hooks.hook).items():
        if not hook.startswith("_") and not caller.has_spec() and not all(map(_is_optional, caller.get_hookimpls())):
            near = get_close_matches(hook, known, n=1)
            told = f"did you mean {near[0]}?" if near else f"the hooks are {', '.join(known)}"
            raise PluginError(f"there is no hook {hook}; {told}")
    return hooks


def _is_optional(implementation: pluggy.HookImpl) -> bool:
    return implementation.optionalhook


def _ask(hooks: pluggy.PluginManager) -> Offered:
    """What the plugin hands out at start-up, options first."""
    return Offered(
        options=_offered(hooks, "naiad_options"),
        backends=_offered(hooks, "naiad_backends"),
        schedulers=_offered(hooks, "naiad_schedulers"),
        frontends=_offered(hooks, "naiad_frontends"),
        caches=_offered(hooks, "naiad_caches"),
        servables=_offered(hooks, "naiad_servables"),
        warms_up=bool(hooks.hook.naiad_warmup.get_hookimpls()),
        has_gates=bool(hooks.hook.naiad_gates.get_hookimpls()),
        has_services=bool(hooks.hook.naiad_services.get_hookimpls()),
        has_stages=bool(hooks.hook.naiad_stages.get_hookimpls()),
        has_workers=bool(hooks.hook.naiad_workers.get_hookimpls()),
        has_runners=bool(hooks.hook.naiad_runners.get_hookimpls()),
    )


def _unique(
    kind: str, things: "Iterable[tuple[_Loaded, str, _T]]", own: Mapping[str, _T] | None = None
) -> dict[str, _T]:
    """The things by name, after the kernel's `own`. Raises PluginError, naming both plugins, for two of one name."""
    found = dict(own or {})
    owners = dict.fromkeys(found, "the kernel")
    for loaded, name, thing in things:
        if name in found:
            owner = f"plugin {loaded.report}"
            both = f"{owner} offers" if owners[name] == owner else f"{owners[name]} and {owner} both offer"
            step = "mend it" if owners[name] == owner else "uninstall one of them"
            raise PluginError(f"{both} the {kind} '{name}'; {step}")
        found[name], owners[name] = thing, f"plugin {loaded.report}"
    return found


def _offered(hooks: pluggy.PluginManager, hook: str) -> tuple[Any, ...]:
    return checked(hook, _answers(hook, getattr(hooks.hook, hook)()))


def _answers(hook: str, answers: Sequence[object]) -> list[Any]:
    """The items of all answers to a hook. Raises PluginError for an answer that is no list or tuple."""
    for answer in answers:
        if not isinstance(answer, list | tuple):
            raise PluginError(f"{hook} answered with {type(answer).__name__}; return a list")
    return [item for answer in answers if isinstance(answer, list | tuple) for item in answer]


def _installed(entry_points: Iterable[metadata.EntryPoint]) -> list[_Source]:
    """A source for each entry point, by name. Raises PluginError for two of one name."""
    by_name: dict[str, _Source] = {}
    for entry_point in sorted(entry_points, key=lambda found: found.name):
        distribution = entry_point.dist
        report = PluginReport(
            entry_point.name, distribution.name if distribution else "", distribution.version if distribution else ""
        )
        earlier = by_name.get(report.name)
        if earlier is not None:
            raise PluginError(
                f"two distributions have a plugin named '{report.name}': {earlier.report.distribution} and "
                f"{report.distribution}; uninstall one of them"
            )
        by_name[report.name] = _Source(report, entry_point=entry_point)
    return list(by_name.values())


def _listed(plugins: Sequence[object]) -> list[_Source]:
    """A source for each object, in the given order. Raises PluginError for an object that is there twice."""
    sources: dict[str, _Source] = {}
    for plugin in plugins:
        name = str(getattr(plugin, "__name__", type(plugin).__name__))
        while name in sources:
            if sources[name].plugin is plugin:
                raise PluginError(f"plugin '{name}' is listed twice; list it once")
            name += "'"
        sources[name] = _Source(PluginReport(name), plugin=plugin)
    return list(sources.values())


def _told(error: BaseException) -> str:
    """The error in one line; an error that is not about plugins comes with its type and the place that raised it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
    if isinstance(error, PluginError | pluggy.PluginValidationError):
        return "; ".join(lines)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    return f"{type(error).__name__}: {lines[0]} ({frames[-1].filename}:{frames[-1].lineno})"
