"""The report of one version that serves, for metrics."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from naiad.reports import SequenceCounts, VersionReport

if TYPE_CHECKING:
    from naiad._kernel.served import ServedVersion


def report_of(version: "ServedVersion") -> VersionReport:
    """The version as it stands at this moment."""
    counters = version.counters
    sequences: Callable[[], SequenceCounts | None] | None = getattr(version, "sequences", None)
    return VersionReport(
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
        cache=None if counters.cache is None else counters.cache.report(),
        sequences=None if sequences is None else sequences(),
    )
