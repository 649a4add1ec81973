"""Reports of a server about itself: its protocol extensions, and the versions that serve."""

from collections.abc import Callable

from naiad._lifecycle.servables import label
from naiad._plugins.registry import PluginRegistry
from naiad._server.services import Services
from naiad.foreign_errors import logged
from naiad.reports import SequenceCounts, VersionReport
from naiad.servables import Servable

_EXTENSIONS = (
    "classification", "sequence", "model_repository", "model_repository(unload_dependents)", "schedule_policy",
    "model_configuration", "system_shared_memory", "cuda_shared_memory", "binary_tensor_data", "parameters",
    "statistics", "trace", "logging",
)  # fmt: skip
_OF_PLUGINS = frozenset({"sequence", "system_shared_memory", "cuda_shared_memory", "trace"})


def extensions_of(plugins: PluginRegistry, services: Services) -> tuple[str, ...]:
    """The protocol extensions by the names that clients know; those of plugins only where these are installed."""
    brought = {name for each in (*services, *plugins.schedulers()) for name in getattr(each, "extensions", ())}
    known = (name for name in _EXTENSIONS if name not in _OF_PLUGINS or name in brought)
    return (*known, *sorted(brought.difference(_EXTENSIONS)))


def reports_of(version: Servable) -> list[VersionReport]:
    """One version as it stands, for metrics; no report of a version whose code raises."""
    with logged(f"reporting {label(version)}", model=version.name):
        counters = version.counters
        sequences: Callable[[], SequenceCounts | None] | None = getattr(version, "sequences", None)
        report = VersionReport(
            name=version.name,
            version=version.version,
            config=version.config,
            load_seconds=counters.load_seconds,
            waiting=version.waiting,
            outstanding=version.outstanding,
            failures={reason.value: count for reason, count in counters.failures.items()},
            cancelled_waiting=counters.cancelled_waiting,
            cancelled_executing=counters.cancelled_executing,
            batch_reasons={str(reason): count for reason, count in counters.reasons.items()},
            instances=version.instances(),
            devices=tuple(executions.report(device) for device, executions in counters.by_device.items()),
            cache=counters.cache_use,
            sequences=None if sequences is None else sequences(),
        )
        return [report]
    return []
