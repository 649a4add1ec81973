"""Warms models up with recorded requests: a plugin that implements `naiad_warmup`."""

from collections.abc import Sequence

from naiad.backend import ModelContext
from naiad.hookspecs import hookimpl
from naiad.warmup import WarmupSample

from naiad_recorded_warmup.replaying import samples_of


@hookimpl
def naiad_warmup(context: ModelContext) -> Sequence[WarmupSample]:
    """One sample for each file in the model's folder `warmup/requests`."""
    return samples_of(context)
