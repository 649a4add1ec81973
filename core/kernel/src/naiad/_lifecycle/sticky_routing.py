"""Sticky routing: a request that carries on a sequence in a draining version goes to that version."""

import asyncio
import logging
from collections.abc import Iterable

from naiad._lifecycle.servables import drain, label
from naiad.codec import StickyRoutes
from naiad.foreign_errors import logged
from naiad.servables import Servable
from naiad.types import Request

_logger = logging.getLogger("naiad.model")


class StickyRouting:
    """The versions that drain and have sticky routes. For the event loop's thread."""

    def __init__(self) -> None:
        self._draining: dict[str, list[Servable]] = {}

    def begin(self, versions: Iterable[Servable]) -> None:
        """These versions drain from now on: no sequence starts in them."""
        for version in versions:
            if _sticky_routes(version) is None or version in self._draining.get(version.name, ()):
                continue
            self._draining.setdefault(version.name, []).append(version)
            if count := _open_sequences(version):
                _logger.info(
                    "%s goes when its sequences have ended or fallen silent; under way: %d", label(version), count
                )

    def end(self, version: Servable) -> None:
        """That version has ended."""
        draining = self._draining.get(version.name, [])
        if version in draining:
            draining.remove(version)
            if not draining:
                del self._draining[version.name]

    def version_for(self, request: Request) -> Servable | None:
        """The draining version that has the sequence of that request under way; None for any other request.

        A request that starts a sequence anew goes elsewhere, and so does all that follows it.
        """
        draining = self._draining.get(request.model_name, ()) if request.correlation_id else ()
        holders = [each for each in draining if request.version in (0, each.version) and _keeps(each, request)]
        return holders[-1] if holders else None

    async def finish(self, versions: Iterable[Servable], seconds: float) -> None:
        """Let the sequences of these versions go on until they end, fall silent, or the time is over."""
        versions = list(versions)
        self.begin(versions)
        drains = {asyncio.ensure_future(drain(version)): version for version in versions if _open_sequences(version)}
        if drains:
            _, late = await asyncio.wait(drains, timeout=seconds)
            for task in late:
                task.cancel()
                if count := _open_sequences(drains[task]):
                    message = "%s gives up its sequences, which have not ended in time: %d"
                    _logger.warning(message, label(drains[task]), count)


def _sticky_routes(version: Servable) -> StickyRoutes | None:
    """What keeps requests at the version while it drains; None where nothing does, or the servable raises."""
    with logged(f"reading the sticky routes of {label(version)}", model=version.name):
        return getattr(version, "sticky", None)
    return None


def _open_sequences(version: Servable) -> int:
    """How many sequences are under way in the version; 0 where the servable raises."""
    routes = _sticky_routes(version)
    with logged(f"counting the sequences of {label(version)}", model=version.name):
        return 0 if routes is None else routes.open
    return 0


def _keeps(version: Servable, request: Request) -> bool:
    """Whether the request carries on a sequence that is under way in the version."""
    routes = _sticky_routes(version)
    with logged(f"finding the sequence of a request in {label(version)}", model=version.name):
        return routes is not None and routes.keeps(request)
    return False
