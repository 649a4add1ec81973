"""The contract of a frontend: it speaks one wire protocol and turns it into calls of the server."""

from typing import Protocol, runtime_checkable

from naiad.server import ServerApi


@runtime_checkable
class Frontend(Protocol):
    """Speaks one wire protocol. `name` is short and unique (`http`)."""

    name: str

    async def start(self, server: ServerApi) -> str:
        """Listen, with the options in `server.settings`, and say where, in words (`http://127.0.0.1:8000`).

        Called before the start-up models are loaded. Raises NaiadError when the address cannot be had.
        """

    async def stop(self, grace: float) -> None:
        """Take no new connections, finish what is in flight within `grace` seconds, then close."""


@runtime_checkable
class KnowsClients(Protocol):
    """What a frontend may offer as well: it knows whether clients are connected, and so how long a stop may wait."""

    async def without_clients(self) -> None:
        """Return as soon as no client is connected; at once where none is."""
