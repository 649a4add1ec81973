"""Warms models up with recorded requests: a plugin that implements `naiad_warmup`."""

from collections.abc import Sequence

from naiad.backend import ModelContext
from naiad.hookspecs import hookimpl
from naiad.warmup import Warmup
from naiad_warmup.samples import warmup_of

from naiad_recorded_warmup.replaying import samples_of


@hookimpl
def naiad_warmup(context: ModelContext) -> Sequence[Warmup]:
    """One sample for each file in the model's folder `warmup/requests`."""
    return warmup_of(context, samples_of(context))
