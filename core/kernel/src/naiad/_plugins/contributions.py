"""Contributions of one plugin: the objects that its hooks return, checked against their contracts, and their names."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pluggy

from naiad._plugins.known_plugins import what_to_install
from naiad.errors import PluginError

if TYPE_CHECKING:
    from naiad.backend import Backend, BackendTraits
    from naiad.cache import CacheFactory
    from naiad.frontend import Frontend
    from naiad.options import Option
    from naiad.repositories import RepositoryAgent, RepositoryScheme
    from naiad.scheduler import SchedulerFactory
    from naiad.servables import ServableFactory

_CONTRACTS = {
    "naiad_options": ("naiad.options", "Option"),
    "naiad_backends": ("naiad.backend", "Backend"),
    "naiad_schedulers": ("naiad.scheduler", "SchedulerFactory"),
    "naiad_caches": ("naiad.cache", "CacheFactory"),
    "naiad_frontends": ("naiad.frontend", "Frontend"),
    "naiad_repositories": ("naiad.repositories", "RepositoryScheme"),
    "naiad_repository_agents": ("naiad.repositories", "RepositoryAgent"),
    "naiad_gates": ("naiad.extend", "GateFactory"),
    "naiad_services": ("naiad.extend", "Service"),
    "naiad_stages": ("naiad.extend", "RequestStage"),
    "naiad_servables": ("naiad.servables", "ServableFactory"),
    "naiad_workers": ("naiad.extend", "WorkerKind"),
    "naiad_runners": ("naiad.extend", "LoopRunner"),
    "naiad_warmup": ("naiad.warmup", "Warmup"),
}
_NAMED = {
    "schedulers": "scheduler",
    "servables": "servable",
    "frontends": "frontend",
    "caches": "cache",
    "repositories": "repository scheme",
    "repository_agents": "repository agent",
}
"""The hooks of start-up whose objects have a name, each with the kind of its contributions."""
_LATER = ("gates", "services", "stages", "workers", "runners", "warmup")
"""The hooks that are called when a server starts or a model is loaded; the objects have no name before."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """One thing that a plugin brings: its `kind` and `name`, for a backend with the `framework` of its traits.

    `install` is the distribution to install, with an extra, for a backend whose framework is missing, "" if unknown.
    """

    kind: str
    name: str
    framework: tuple[str, ...] = ()
    install: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Contributions:
    """The objects that one plugin returns at start-up; `later` are the other hooks that it implements."""

    options: "tuple[Option, ...]" = ()
    backends: "tuple[Backend, ...]" = ()
    schedulers: "tuple[SchedulerFactory, ...]" = ()
    frontends: "tuple[Frontend, ...]" = ()
    caches: "tuple[CacheFactory, ...]" = ()
    servables: "tuple[ServableFactory, ...]" = ()
    repositories: "tuple[RepositoryScheme, ...]" = ()
    repository_agents: "tuple[RepositoryAgent, ...]" = ()
    later: tuple[str, ...] = ()

    @classmethod
    def of(cls, hooks: pluggy.PluginManager) -> "Contributions":
        """Call the start-up hooks of a plugin, options first. Raises PluginError for objects of another contract."""
        objects = {kind: call(hooks, f"naiad_{kind}") for kind in ("options", "backends", *_NAMED)}
        later = tuple(kind for kind in _LATER if hasattr(hooks.hook, f"naiad_{kind}"))
        return cls(**objects, later=later)

    def names(self, plugin: str) -> tuple[Contribution, ...]:
        """The names of all objects, without importing a framework; those that are made later have the plugin's name."""
        names = {"runners": "event loop", "warmup": "samples"}
        return (
            *(_of_backend(each.traits) for each in self.backends),
            *(Contribution(kind, each.name) for kinds, kind in _NAMED.items() for each in getattr(self, kinds)),
            *(Contribution(kind.removesuffix("s"), names.get(kind, plugin)) for kind in self.later),
            *(Contribution("options", f"--{each.name}") for each in self.options),
        )


def _of_backend(traits: "BackendTraits") -> Contribution:
    frameworks = (traits.framework,) if isinstance(traits.framework, str) else traits.framework
    install = what_to_install("backend", traits.name)
    return Contribution("backend", traits.name, tuple(filter(None, frameworks)), install)


def call(hooks: pluggy.PluginManager, hook: str, **arguments: object) -> tuple[Any, ...]:
    """The objects that a plugin's hook returns. Raises PluginError for an answer or an object of another contract."""
    answers = getattr(hooks.hook, hook, lambda **_: ())(**arguments)
    for answer in answers:
        if not isinstance(answer, list | tuple):
            raise PluginError(f"{hook} answered with {type(answer).__name__}; return a list")
    return _checked(hook, [item for answer in answers for item in answer])


def _checked(hook: str, objects: Sequence[Any]) -> tuple[Any, ...]:
    if not objects:
        return ()  # the module of a contract is imported only when it is needed: that of backends brings numpy
    module, name = _CONTRACTS[hook]
    contract = getattr(importlib.import_module(module), name)
    for each in objects:
        if not isinstance(each, contract):
            members = set(dir(contract)).union(*(getattr(part, "__annotations__", ()) for part in contract.__mro__))
            lacking = ", ".join(sorted(name for name in members if name[0] != "_" and not hasattr(each, name)))
            reason = f"lacks {lacking}" if lacking else "is something else"
            raise PluginError(f"{hook} offered a {type(each).__name__}, which is no {name}: it {reason}")
    return tuple(objects)
