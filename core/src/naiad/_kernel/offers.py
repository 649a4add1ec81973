"""What a plugin offers: the answers of its start-up hooks, checked, and the same in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

from naiad.errors import PluginError

if TYPE_CHECKING:
    from naiad.backend import Backend
    from naiad.frontend import Frontend
    from naiad.options import Option
    from naiad.scheduler import SchedulerFactory


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
    warms_up: bool = False

    def offers(self) -> tuple[Offer, ...]:
        """The same in words, without importing a framework."""
        backends = [Offer("backend", each.traits.name, framework(each.traits.framework)) for each in self.backends]
        schedulers = [Offer("scheduler", each.name) for each in self.schedulers]
        frontends = [Offer("frontend", each.name) for each in self.frontends]
        warmup = [Offer("warmup", "samples")] if self.warms_up else []
        options = [Offer("options", f"--{each.name}") for each in self.options]
        return (*backends, *schedulers, *frontends, *warmup, *options)


def framework(distribution: str) -> str:
    """The framework with the version that is installed (`onnxruntime 1.20.0`), read from its metadata.

    A framework whose distribution for GPUs or CPUs has a name of its own (`onnxruntime-gpu`) is found under it.
    """
    if not distribution:
        return ""
    for name in (distribution, f"{distribution}-gpu", f"{distribution}-cpu"):
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return f"{distribution} is not installed"


def checked_options(found: Sequence[Any]) -> "tuple[Option, ...]":
    """The same options. Raises PluginError when one is something else."""
    if not found:
        return ()
    from naiad.options import Option

    return tuple(_checked("naiad_options", option, Option) for option in found)


def checked_backends(found: Sequence[Any]) -> "tuple[Backend, ...]":
    """The same backends. Raises PluginError when one lacks a member of the contract."""
    if not found:
        return ()
    from naiad.backend import Backend

    return tuple(_checked("naiad_backends", backend, Backend) for backend in found)


def checked_schedulers(found: Sequence[Any]) -> "tuple[SchedulerFactory, ...]":
    """The same kinds of scheduler. Raises PluginError when one lacks a member of the contract."""
    if not found:
        return ()
    from naiad.scheduler import SchedulerFactory

    return tuple(_checked("naiad_schedulers", factory, SchedulerFactory) for factory in found)


def checked_frontends(found: Sequence[Any]) -> "tuple[Frontend, ...]":
    """The same frontends. Raises PluginError when one lacks a member of the contract."""
    if not found:
        return ()
    from naiad.frontend import Frontend

    return tuple(_checked("naiad_frontends", frontend, Frontend) for frontend in found)


def _checked(hook: str, offered: Any, contract: type) -> Any:
    if isinstance(offered, contract):
        return offered
    members = {*contract.__annotations__, *(name for name in vars(contract) if not name.startswith("_"))}
    lacking = sorted(member for member in members if not hasattr(offered, member))
    told = f"lacks {', '.join(lacking)}" if lacking else "is something else"
    raise PluginError(f"{hook} offered a {type(offered).__name__}, which is no {contract.__name__}: it {told}")
