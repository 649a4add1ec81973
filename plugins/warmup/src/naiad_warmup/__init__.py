"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.backend import ModelContext
    from naiad.warmup import Warmup


@hookimpl
def naiad_warmup(context: "ModelContext") -> "Sequence[Warmup]":
    """The samples that `model_warmup` of the configuration describes."""
    if not context.config.model_warmup:
        return []
    from naiad_warmup.configured import configured_samples
    from naiad_warmup.samples import warmup_of

    return warmup_of(context, configured_samples(context))
