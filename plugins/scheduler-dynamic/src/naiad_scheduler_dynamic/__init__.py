"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.scheduler import SchedulerFactory


@hookimpl
def naiad_schedulers() -> "Sequence[SchedulerFactory]":
    """The dynamic batcher."""
    from naiad_scheduler_dynamic.factory import DynamicBatching

    return [DynamicBatching()]
