"""Hook implementations of this plugin: the metrics service, and the frontend that serves it to Prometheus."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.extend import Service
    from naiad.frontend import Frontend
    from naiad.options import Option, Settings


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """The options of the metrics, and of their frontend."""
    from naiad_metrics.config import METRICS_OPTIONS
    from naiad_metrics.options import OPTIONS

    return (*METRICS_OPTIONS, *OPTIONS)


@hookimpl
def naiad_frontends() -> "Sequence[Frontend]":
    """The metrics frontend."""
    from naiad_metrics.frontend import MetricsFrontend

    return [MetricsFrontend()]


@hookimpl
def naiad_services(settings: "Settings") -> "Sequence[Service]":
    """The metrics service."""
    from naiad_metrics.config import MetricsConfig
    from naiad_metrics.service import MetricsService

    return [MetricsService(MetricsConfig.of(settings))]
