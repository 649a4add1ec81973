"""Hook implementations of this plugin: the options of the dashboard, its frontend, and its log lines."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.extend import Service
    from naiad.frontend import Frontend
    from naiad.options import Option, Settings


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """The options of the dashboard."""
    from naiad_dashboard.options import OPTIONS

    return OPTIONS


@hookimpl
def naiad_frontends() -> "Sequence[Frontend]":
    """The dashboard."""
    from naiad_dashboard.frontend import DashboardFrontend

    return [DashboardFrontend()]


@hookimpl
def naiad_services(settings: "Settings") -> "Sequence[Service]":
    """The last lines of the log and the location of the dashboard, unless there is none."""
    from naiad_dashboard.location import DashboardLocation
    from naiad_dashboard.records import LogTail

    return [LogTail(), DashboardLocation()] if settings["allow-dashboard"] else []
