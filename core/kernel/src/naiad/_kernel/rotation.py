"""Putting versions in and out of service: the next generation serves at once, the last one answers what it took in."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from time import monotonic
from typing import Any

from naiad._kernel.catalogue import Catalogue
from naiad._kernel.entries import UNAVAILABLE, UNLOADED, UNLOADING, ModelEntry, VersionState
from naiad._kernel.served import ServedVersion
from naiad.threads import on_own_thread

Folder = tempfile.TemporaryDirectory[str]


class Rotation:
    """Swaps generations. `own` runs a coroutine as a task of the server's, which is given up when that stops.

    `retired` is called when versions of a model have been freed. `alive` are all versions that are not freed. One that
    others have leases on outlives them.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        own: Callable[[Coroutine[Any, Any, None]], object],
        retired: Callable[[ModelEntry], Awaitable[None]],
    ) -> None:
        self.alive: set[ServedVersion] = set()
        self._catalogue = catalogue
        self._own = own
        self._retired = retired

    def swap(
        self, entry: ModelEntry, successors: Mapping[int, ServedVersion], folder: Folder | None = None, why: str = ""
    ) -> None:
        """Let the successors serve from now on, and end the others once they have answered what they took in.

        `why` is the reason for what is not replaced, where it was not unloaded on purpose.
        """
        retired, entry.serving = entry.serving, dict(successors)
        old_folder, entry.folder = entry.folder, folder
        self.alive.update(successors.values())
        if successors:
            self._catalogue.serving_by_name[entry.name] = {**successors, 0: successors[max(successors)]}
        else:
            self._catalogue.serving_by_name.pop(entry.name, None)
        self._catalogue.handover.begin(retired.values())
        for version in retired:
            if version not in successors:
                entry.states[version] = VersionState(UNLOADING, why)
        self._own(self._retire(entry, list(retired.values()), old_folder))

    async def close(self, grace: float) -> bool:
        """Answer what was taken in within `grace` seconds, then end every instance; whether all of it ended in time."""
        deadline = monotonic() + grace
        drains = asyncio.ensure_future(_drained(self.alive))
        await asyncio.wait([drains], timeout=grace)
        drains.cancel()
        self._catalogue.serving_by_name.clear()
        left = max(0.1, deadline - monotonic())
        ended = await asyncio.gather(*(version.close(left) for version in self.alive))
        folders = [entry.folder for entry in self._catalogue.entries.values() if entry.folder is not None]
        if folders:
            await asyncio.wait([asyncio.ensure_future(_removed(folder)) for folder in folders], timeout=left)
        return all(ended)

    async def _retire(self, entry: ModelEntry, versions: Sequence[ServedVersion], folder: Folder | None) -> None:
        """Answer what the versions took in, then free them."""
        try:
            await asyncio.gather(*(self._end(entry, version) for version in versions))
        finally:
            if folder is not None:
                await _removed(folder)
        await self._retired(entry)

    async def _end(self, entry: ModelEntry, version: ServedVersion) -> None:
        """Free a version when the others that use it have ended: they submit to it until then."""
        await self._catalogue.leases.released(version)
        await version.drain()
        await version.close()
        self.alive.discard(version)
        self._catalogue.handover.end(version)
        state = entry.states.get(version.version)
        if state is not None and state.state == UNLOADING:
            entry.states[version.version] = VersionState(UNAVAILABLE, state.reason or UNLOADED)


async def _removed(folder: Folder) -> None:
    await on_own_thread("naiad-remove-files", folder.cleanup)


async def _drained(versions: Collection[ServedVersion]) -> None:
    """Return when all of them have answered all that was taken in, with all that they asked each other meanwhile."""
    while True:
        await asyncio.gather(*(version.drain() for version in versions))
        if not any(version.outstanding for version in versions):  # one that had drained may have been asked again
            return
