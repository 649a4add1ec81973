"""The seams of the server: protocols of what a plugin may put around models, and beside them.

The hooks in `naiad.hookspecs` hand these objects out at start-up or when a model is loaded.
"""

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from naiad._kernel.server import Server

# Services


@runtime_checkable
class Service(Protocol):
    """One object for the whole server, such as the tracer or the shared memory regions.

    Made by the hook `naiad_services`. Frontends and plugins get it from `server.service(Kind)`, where `Kind` is a
    runtime-checkable protocol, or a class, that has the same `name` (`shared-memory`) as a class attribute.
    """

    name: str

    async def start(self, server: "Server") -> None:
        """Begin. Called once on the event loop, before any model is loaded and any frontend listens.

        Raises NaiadError when the server cannot run with the options that concern this service.
        """
        ...

    async def stop(self, seconds: float) -> None:
        """Write what is to be kept, and free everything, within so many seconds.

        Called once on the event loop, after the frontends and the models have ended; it is cancelled when it is late.
        """
        ...


ServiceT = TypeVar("ServiceT", bound=Service)
"""The kind of service that is asked for."""
