"""Hook implementations of the metrics frontend."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.frontend import Frontend
    from naiad.options import Option


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """The options of this frontend."""
    from naiad_metrics.options import OPTIONS

    return OPTIONS


@hookimpl
def naiad_frontends() -> "Sequence[Frontend]":
    """The metrics frontend."""
    from naiad_metrics.frontend import MetricsFrontend

    return [MetricsFrontend()]
