"""A servable as the kernel serves it: with counters of its own."""

from typing import Protocol

from naiad._kernel.statistics import VersionCounters
from naiad.servables import Servable


class ServedVersion(Servable, Protocol):
    """One version from its load to its last answer, be it a model's own or made by a servable factory."""

    @property
    def counters(self) -> VersionCounters:
        """What it has done since it was loaded."""
        ...
