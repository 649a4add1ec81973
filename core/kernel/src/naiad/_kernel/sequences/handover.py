"""Versions that go out of service while sequences are under way in them: those are still served, and no others."""

import asyncio
import logging
from collections.abc import Iterable

from naiad._kernel.sequences.queue import SequenceQueue
from naiad._kernel.served import ServedVersion
from naiad.types import Request

_logger = logging.getLogger("naiad.model")


class Handover:
    """Knows which requests carry on a sequence of a version that leaves. Lives on the event loop's thread."""

    def __init__(self) -> None:
        self._leaving: dict[str, list[ServedVersion]] = {}

    def begin(self, versions: Iterable[ServedVersion]) -> None:
        """These versions leave: nothing new starts in them."""
        for version in versions:
            queue = _queue(version)
            if queue is None or version in self._leaving.get(version.name, ()):
                continue
            self._leaving.setdefault(version.name, []).append(version)
            if queue.open:
                _logger.info(
                    "%s goes when its sequences have ended or fallen silent; under way: %d", _name(version), queue.open
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
            queue = _queue(version)
            if (
                queue is None
                or request.version not in (0, version.version)
                or not queue.is_open(request.correlation_id)
            ):
                continue
            if request.sequence_start:
                queue.leave(request.correlation_id)
            else:
                found = version
        return found

    async def finish(self, versions: Iterable[ServedVersion], seconds: float) -> None:
        """Let the sequences of these versions go on until they end, fall silent, or the time is over."""
        versions = list(versions)
        self.begin(versions)
        queues = [(version, queue) for version in versions if (queue := _queue(version)) is not None and queue.open]
        if queues:
            waits = {asyncio.ensure_future(queue.drained()): (version, queue) for version, queue in queues}
            _, late = await asyncio.wait(waits, timeout=seconds)
            for wait in late:
                wait.cancel()
                version, queue = waits[wait]
                if queue.open:
                    told = "%s gives up its sequences, which have not ended in time: %d"
                    _logger.warning(told, _name(version), queue.open)


def _name(version: ServedVersion) -> str:
    return f"model '{version.name}' version {version.version}"


def _queue(version: ServedVersion) -> SequenceQueue | None:
    """The queue of a version whose requests come in sequences."""
    return getattr(version, "sequences", None)
