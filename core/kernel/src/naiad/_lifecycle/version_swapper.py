"""The version swapper: puts new versions into service, drains and closes the old ones, and loses no request."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from time import monotonic
from typing import Any

from naiad._lifecycle.model_record import UNAVAILABLE, UNLOADED, UNLOADING, ModelRecord, VersionState
from naiad._lifecycle.model_registry import ModelRegistry
from naiad._lifecycle.prepared import Held, release
from naiad._lifecycle.servables import close, drain, has_requests
from naiad.servables import Servable
from naiad.threads import on_own_thread


class VersionSwapper:
    """Swaps the versions of models; `alive` are all versions that are not closed.

    `own` runs a coroutine as a task of the server, which is cancelled when that stops. `retired` is called when old
    versions of a model have been closed.
    """

    def __init__(
        self,
        registry: ModelRegistry,
        own: Callable[[Coroutine[Any, Any, None]], object],
        retired: Callable[[ModelRecord], Awaitable[None]],
    ) -> None:
        self.alive: set[Servable] = set()
        self._registry = registry
        self._own = own
        self._retired = retired

    def swap(
        self, record: ModelRecord, successors: Mapping[int, Servable], held: Held | None = None, why: str = ""
    ) -> None:
        """Let the successors serve from now on; drain and close the others.

        `why` is the reason for versions that are not replaced, where they were not unloaded on purpose.
        """
        retired, record.serving = record.serving, dict(successors)
        old_held, record.held = record.held, held or []
        self.alive.update(successors.values())
        if successors:
            self._registry.serving_versions[record.name] = {**successors, 0: successors[max(successors)]}
        else:
            self._registry.serving_versions.pop(record.name, None)
        self._registry.sticky_routing.begin(retired.values())
        for version in retired:
            if version not in successors:
                record.states[version] = VersionState(UNLOADING, why)
        self._own(self._retire(record, list(retired.values()), old_held))

    async def close(self, grace: float) -> bool:
        """Drain all versions within `grace` seconds, then close them; whether all of it ended in time."""
        deadline = monotonic() + grace
        drains = asyncio.ensure_future(_drained(self.alive))
        await asyncio.wait([drains], timeout=grace)
        drains.cancel()
        self._registry.serving_versions.clear()
        remaining = max(0.1, deadline - monotonic())
        ended = await asyncio.gather(*(close(version, remaining) for version in self.alive))
        releases = [_release(record.held) for record in self._registry.records.values() if record.held]
        if releases:
            await asyncio.wait(map(asyncio.ensure_future, releases), timeout=remaining)
        return all(ended)

    async def _retire(self, record: ModelRecord, versions: Sequence[Servable], held: Held) -> None:
        try:
            await asyncio.gather(*(self._end(record, version) for version in versions))
        finally:
            await _release(held)
        await self._retired(record)

    async def _end(self, record: ModelRecord, version: Servable) -> None:
        """Drain and close a version once the servables that use it have ended: they submit to it until then."""
        await self._registry.leases.released(version)
        await drain(version)
        await close(version)
        self._registry.leases.end(version)
        self.alive.discard(version)
        self._registry.sticky_routing.end(version)
        state = record.states.get(version.version)
        if state is not None and state.state == UNLOADING:
            record.states[version.version] = VersionState(UNAVAILABLE, state.reason or UNLOADED)


async def _release(held: Held) -> None:
    if held:
        await on_own_thread("naiad-remove-files", release, held)


async def _drained(versions: Collection[Servable]) -> None:
    """Return when all of them have answered all that was taken in, with all that they called each other for."""
    while True:
        await asyncio.gather(*map(drain, versions))
        if not any(map(has_requests, versions)):  # one that had drained may have been called again
            return
