"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.scheduler import SchedulerFactory


@hookimpl
def naiad_schedulers() -> "Sequence[SchedulerFactory]":
    """What composes ensembles."""
    from naiad_scheduler_ensemble.factory import EnsembleScheduling

    return [EnsembleScheduling()]
