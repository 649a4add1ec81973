"""Discovery of plugins: found through entry points or listed, imported, and registered each for itself."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import metadata
from types import ModuleType
from typing import Any

import pluggy

from naiad import hookspecs
from naiad._plugins.contributions import Contribution, Contributions, call
from naiad.errors import NaiadError, PluginError
from naiad.foreign_errors import raise_interrupt

GROUP = "naiad"


@dataclass(frozen=True, slots=True)
class PluginReport:
    """One plugin: its entry point's name, its distribution with version ("" when it was passed as an object).

    `contributions` says what it brings; `skipped` why it is not in use, "" when it is.
    """

    name: str
    distribution: str = ""
    version: str = ""
    contributions: tuple[Contribution, ...] = ()
    skipped: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of things it brings, each once, such as backend, cache or options."""
        return tuple(dict.fromkeys(each.kind for each in self.contributions))

    def __str__(self) -> str:
        return f"'{self.name}' ({self.distribution} {self.version})" if self.distribution else f"'{self.name}'"


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin in use: its report, the objects that it returned at start-up, and its hooks."""

    report: PluginReport
    contributions: Contributions
    hooks: pluggy.PluginManager

    def call(self, hook: str, **arguments: object) -> tuple[Any, ...]:
        """The objects that the hook returns.

        Raises the NaiadError by which the plugin refuses; any other error becomes a PluginError naming plugin and hook.
        """
        try:
            return call(self.hooks, hook, **arguments)
        except PluginError as error:
            raise PluginError(f"plugin {self.report}: {error}") from error
        except NaiadError:
            raise
        except BaseException as error:
            raise_interrupt(error)
            raise PluginError(f"{hook} of plugin {self.report} raised {_described(error)}") from error


@dataclass(frozen=True, slots=True)
class Source:
    """A plugin before it is registered: an object, or an entry point that is still to be imported."""

    report: PluginReport
    plugin: object = None
    entry_point: metadata.EntryPoint | None = None

    def load(self) -> Plugin | PluginReport:
        """Import the plugin, check its hooks and call those of start-up; the report of a skipped one says why."""
        try:
            plugin = self.entry_point.load() if self.entry_point is not None else self.plugin
            hooks = _hooks_of(plugin, self.report.name)
            contributions = Contributions.of(hooks)
        except BaseException as error:  # noqa: BLE001 whatever a broken plugin does, the others go on
            raise_interrupt(error)
            return replace(self.report, skipped=_described(error))
        report = replace(self.report, contributions=contributions.names(self.report.name))
        return Plugin(report, contributions, hooks)


def installed_plugins() -> list[Source]:
    """The entry points of all distributions, by name. Raises PluginError for two of one name."""
    by_name: dict[str, Source] = {}
    for entry_point in sorted(metadata.entry_points(group=GROUP), key=lambda each: each.name):
        described = entry_point.dist.metadata if entry_point.dist else None  # each access parses the file again
        report = PluginReport(entry_point.name, *((described["Name"], described["Version"]) if described else ()))
        if earlier := by_name.get(report.name):
            raise PluginError(
                f"two distributions have a plugin named '{report.name}': {earlier.report.distribution} and "
                f"{report.distribution}; uninstall one of them"
            )
        by_name[report.name] = Source(report, entry_point=entry_point)
    return list(by_name.values())


def listed_plugins(plugins: Sequence[object]) -> list[Source]:
    """Modules and objects with hooks, in this order. Raises PluginError for an object that is listed twice."""
    sources: dict[str, Source] = {}
    for plugin in plugins:
        name = str(getattr(plugin, "__name__", type(plugin).__name__))
        while name in sources:
            if sources[name].plugin is plugin:
                raise PluginError(f"plugin '{name}' is listed twice; list it once")
            name += "'"
        sources[name] = Source(PluginReport(name), plugin=plugin)
    return list(sources.values())


def _hooks_of(plugin: object, name: str) -> pluggy.PluginManager:
    """The plugin in a hook caller of its own, which attributes to it what it returns or breaks.

    Raises PluginError for a hook that does not exist, which pluggy lets pass, and pluggy's own error for one with wrong
    arguments. Of a module pluggy gets the marked functions alone: it takes ten times as long to examine every name.
    """
    hooks = pluggy.PluginManager(GROUP)
    marked, specs = ModuleType("marked"), ModuleType("specs")
    if isinstance(plugin, ModuleType):
        vars(marked).update((key, each) for key, each in vars(plugin).items() if hasattr(each, f"{GROUP}_impl"))
    hooks.register(marked if isinstance(plugin, ModuleType) else plugin, name)
    known = {hook: spec for hook, spec in sorted(vars(hookspecs).items()) if hook.startswith("naiad_")}
    vars(specs).update((hook, spec) for hook, spec in known.items() if hasattr(hooks.hook, hook))
    if known.keys() & vars(specs).keys():
        hooks.add_hookspecs(specs)
    for hook, caller in vars(hooks.hook).items():
        if hook.startswith("_") or caller.has_spec() or all(each.optionalhook for each in caller.get_hookimpls()):
            continue
        near = get_close_matches(hook, known, n=1)
        advice = f"did you mean {near[0]}?" if near else f"the hooks are {', '.join(known)}"
        raise PluginError(f"there is no hook {hook}; {advice}")
    return hooks


def _described(error: BaseException) -> str:
    """The error in one line; an error that is not about plugins with its type and the line of code that raised it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
    if isinstance(error, PluginError | pluggy.PluginValidationError):
        return "; ".join(lines)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    return f"{type(error).__name__}: {lines[0]} ({frames[-1].filename}:{frames[-1].lineno})"
