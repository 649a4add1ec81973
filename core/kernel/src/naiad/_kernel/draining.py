"""Waiting until no request is under way in several versions, some of which ask others for their answers."""

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from naiad._kernel.served import ServedVersion


async def drained(versions: "Collection[ServedVersion]") -> None:
    """Return when all of them have answered all that was taken in, with all that they asked each other meanwhile."""
    while True:
        await asyncio.gather(*(version.drain() for version in versions))
        if not any(version.outstanding for version in versions):  # one that had drained may have been asked again
            return
