"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.servables import ServableFactory


@hookimpl
def naiad_servables() -> "Sequence[ServableFactory]":
    """What serves ensembles."""
    from naiad_scheduler_ensemble.factory import EnsembleFactory

    return [EnsembleFactory()]
