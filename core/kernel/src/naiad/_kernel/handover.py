"""Sticky routing: requests that carry on what is under way in a version that drains, such as a sequence, go there."""

import asyncio
import logging
from collections.abc import Iterable

from naiad._kernel.served import ServedVersion
from naiad.codec import StickyRoutes
from naiad.types import Request

_logger = logging.getLogger("naiad.model")


class Handover:
    """The versions that go out of service and have sticky routes. Lives on the event loop's thread."""

    def __init__(self) -> None:
        self._leaving: dict[str, list[ServedVersion]] = {}

    def begin(self, versions: Iterable[ServedVersion]) -> None:
        """These versions leave: nothing new starts in them."""
        for version in versions:
            sticky = _sticky(version)
            if sticky is None or version in self._leaving.get(version.name, ()):
                continue
            self._leaving.setdefault(version.name, []).append(version)
            if sticky.open:
                _logger.info(
                    "%s goes when its sequences have ended or fallen silent; under way: %d", _name(version), sticky.open
                )

    def end(self, version: ServedVersion) -> None:
        """That version is gone."""
        leaving = self._leaving.get(version.name, [])
        if version in leaving:
            leaving.remove(version)
            if not leaving:
                del self._leaving[version.name]

    def version_for(self, request: Request) -> ServedVersion | None:
        """The version that leaves and has the sequence of that request under way; None for any other request.

        A request that starts a sequence anew goes elsewhere, and so does all that follows it.
        """
        found = None
        for version in self._leaving.get(request.model_name, ()) if request.correlation_id else ():
            sticky = _sticky(version)
            if sticky is not None and request.version in (0, version.version) and sticky.keeps(request):
                found = version
        return found

    async def finish(self, versions: Iterable[ServedVersion], seconds: float) -> None:
        """Let the sequences of these versions go on until they end, fall silent, or the time is over."""
        versions = list(versions)
        self.begin(versions)
        waits = {asyncio.ensure_future(version.drain()): version for version in versions if _open(version)}
        if waits:
            _, late = await asyncio.wait(waits, timeout=seconds)
            for wait in late:
                wait.cancel()
                version = waits[wait]
                if _open(version):
                    message = "%s gives up its sequences, which have not ended in time: %d"
                    _logger.warning(message, _name(version), _open(version))


def _name(version: ServedVersion) -> str:
    return f"model '{version.name}' version {version.version}"


def _sticky(version: ServedVersion) -> StickyRoutes | None:
    """What keeps requests at a version; None for a servable without it."""
    return getattr(version, "sticky", None)


def _open(version: ServedVersion) -> int:
    """How many sequences are under way in a version."""
    sticky = _sticky(version)
    return 0 if sticky is None else sticky.open
