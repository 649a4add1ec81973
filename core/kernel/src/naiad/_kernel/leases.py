"""Leases on versions: who uses a version that is about to end keeps it from ending."""

import asyncio

from naiad._kernel.served import ServedVersion


class VersionLease:
    """One use of a version, until it is released."""

    __slots__ = ("_leases", "servable")

    def __init__(self, leases: "Leases", servable: ServedVersion) -> None:
        self._leases: Leases | None = leases
        self.servable = servable

    def release(self) -> None:
        """The version is used no more; harmless when repeated."""
        leases, self._leases = self._leases, None
        if leases is not None:
            leases.give_back(self.servable)


class Leases:
    """All leases of a server. For the event loop's thread."""

    def __init__(self) -> None:
        self._counts: dict[ServedVersion, int] = {}
        self._released: dict[ServedVersion, asyncio.Event] = {}

    def take(self, servable: ServedVersion) -> VersionLease:
        """A new lease on that version."""
        self._counts[servable] = self._counts.get(servable, 0) + 1
        return VersionLease(self, servable)

    def give_back(self, servable: ServedVersion) -> None:
        """One lease on that version has ended; to be called once for each."""
        self._counts[servable] -= 1
        if not self._counts[servable]:
            del self._counts[servable]
            released = self._released.pop(servable, None)
            if released is not None:
                released.set()

    async def released(self, servable: ServedVersion) -> None:
        """Return when nobody has a lease on that version."""
        while servable in self._counts:
            await self._released.setdefault(servable, asyncio.Event()).wait()
