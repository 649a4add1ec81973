"""What a plugin offers: the answers of its start-up hooks, checked, and the same in words."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from naiad._kernel.known_plugins import what_to_install
from naiad.errors import PluginError
from naiad.frameworks import installed_framework

if TYPE_CHECKING:
    from naiad.backend import Backend, BackendTraits
    from naiad.cache import CacheFactory
    from naiad.frontend import Frontend
    from naiad.options import Option
    from naiad.scheduler import SchedulerFactory
    from naiad.servables import ServableFactory


_CONTRACTS = {
    "naiad_options": ("naiad.options", "Option"),
    "naiad_backends": ("naiad.backend", "Backend"),
    "naiad_schedulers": ("naiad.scheduler", "SchedulerFactory"),
    "naiad_caches": ("naiad.cache", "CacheFactory"),
    "naiad_frontends": ("naiad.frontend", "Frontend"),
    "naiad_gates": ("naiad.extend", "GateFactory"),
    "naiad_services": ("naiad.extend", "Service"),
    "naiad_stages": ("naiad.extend", "RequestStage"),
    "naiad_servables": ("naiad.servables", "ServableFactory"),
    "naiad_workers": ("naiad.extend", "WorkerKind"),
    "naiad_runners": ("naiad.extend", "LoopRunner"),
}


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that a plugin brings: its `kind`, its `name`, and for a backend the framework with its version."""

    kind: str
    name: str
    framework: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f" ({self.framework})" if self.framework else "")


@dataclass(frozen=True, slots=True)
class Offered:
    """The objects that one plugin handed out at start-up."""

    options: "tuple[Option, ...]" = ()
    backends: "tuple[Backend, ...]" = ()
    schedulers: "tuple[SchedulerFactory, ...]" = ()
    frontends: "tuple[Frontend, ...]" = ()
    caches: "tuple[CacheFactory, ...]" = ()
    servables: "tuple[ServableFactory, ...]" = ()
    warms_up: bool = False
    has_gates: bool = False
    has_services: bool = False
    has_stages: bool = False
    has_workers: bool = False
    has_runners: bool = False

    def offers(self, plugin: str) -> tuple[Offer, ...]:
        """The same in words, without importing a framework; what is made later goes by the name of the `plugin`."""
        backends = [Offer("backend", each.traits.name, framework(each.traits)) for each in self.backends]
        schedulers = [Offer("scheduler", each.name) for each in self.schedulers]
        frontends = [Offer("frontend", each.name) for each in self.frontends]
        caches = [Offer("cache", each.name) for each in self.caches]
        servables = [Offer("servable", each.name) for each in self.servables]
        warmup = [Offer("warmup", "samples")] if self.warms_up else []
        options = [Offer("options", f"--{each.name}") for each in self.options]
        services = [Offer("service", plugin)] if self.has_services else []
        gates = [Offer("gate", plugin)] if self.has_gates else []
        stages = [Offer("stage", plugin)] if self.has_stages else []
        workers = [Offer("worker", plugin)] if self.has_workers else []
        runners = [Offer("runner", "event loop")] if self.has_runners else []
        later = (*gates, *services, *stages, *workers, *runners)
        return (*backends, *schedulers, *servables, *frontends, *caches, *later, *warmup, *options)


def framework(traits: "BackendTraits") -> str:
    """The framework of a backend with its version, or what to install when there is none; "" for a backend without."""
    if not traits.framework:
        return ""
    wanted = traits.framework if isinstance(traits.framework, str) else traits.framework[0]
    install = what_to_install("backend", traits.name)
    missing = f"{wanted} is not installed" + (f": pip install '{install}'" if install else "")
    return installed_framework(traits.framework) or missing


def checked(hook: str, found: Sequence[Any]) -> tuple[Any, ...]:
    """What the plugin's hook offers, as it is. Raises PluginError when something lacks a member of its contract."""
    if not found:
        return ()  # the module of a contract is imported only when it is needed: that of backends brings numpy
    module, name = _CONTRACTS[hook]
    contract = getattr(importlib.import_module(module), name)
    for offered in found:
        if not isinstance(offered, contract):
            members = {*contract.__annotations__, *(member for member in vars(contract) if not member.startswith("_"))}
            lacking = sorted(member for member in members if not hasattr(offered, member))
            told = f"lacks {', '.join(lacking)}" if lacking else "is something else"
            raise PluginError(f"{hook} offered a {type(offered).__name__}, which is no {name}: it {told}")
    return tuple(found)
