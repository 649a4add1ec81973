"""Leases on versions: a version that a servable uses is not drained and closed before the servable has ended."""

import asyncio
from collections.abc import Collection, Sequence

from naiad.servables import Servable


class VersionLease:
    """The use of a version by a servable, until it is released."""

    __slots__ = ("_leases", "servable")

    def __init__(self, leases: "Leases", servable: Servable) -> None:
        self._leases: Leases | None = leases
        self.servable = servable

    def release(self) -> None:
        """The version is used no more; harmless when repeated."""
        leases, self._leases = self._leases, None
        if leases is not None:
            leases.give_back(self.servable)


class Leases:
    """All leases of a server, and the servables that hold them. For the event loop's thread."""

    def __init__(self) -> None:
        self._counts: dict[Servable, int] = {}
        self._released: dict[Servable, asyncio.Event] = {}
        self._bindings: dict[Servable, tuple[set[Servable], Sequence[VersionLease]]] = {}

    def take(self, servable: Servable) -> VersionLease:
        """A new lease on that version."""
        self._counts[servable] = self._counts.get(servable, 0) + 1
        return VersionLease(self, servable)

    def give_back(self, servable: Servable) -> None:
        """One lease on that version has ended; to be called once for each."""
        self._counts[servable] -= 1
        if not self._counts[servable]:
            del self._counts[servable]
            released = self._released.pop(servable, None)
            if released is not None:
                released.set()

    async def released(self, servable: Servable) -> None:
        """Return when there is no lease on that version."""
        while servable in self._counts:
            await self._released.setdefault(servable, asyncio.Event()).wait()

    def bind(self, holders: Collection[Servable], leases: Sequence[VersionLease]) -> None:
        """These servables were bound together and hold the leases, of which the last to end keeps none."""
        binding = (set(holders), leases)
        self._bindings.update(dict.fromkeys(holders, binding))
        if not holders:
            _release(leases)

    def end(self, holder: Servable) -> None:
        """That servable has ended, perhaps by an error that kept it from releasing its leases."""
        holders, leases = self._bindings.pop(holder, (set(), ()))
        holders.discard(holder)
        if not holders:
            _release(leases)


def _release(leases: Sequence[VersionLease]) -> None:
    for lease in leases:
        lease.release()
