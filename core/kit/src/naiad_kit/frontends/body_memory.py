"""Body memory service: where a frontend receives the body of a request, so that its model reads it without a copy.

A model in another process reads its inputs in memory that both processes have. A frontend that knows the model and the
size of a body before the body has come receives it there. The distribution naiad-process-workers brings the service.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from naiad.errors import UnsupportedError
from naiad.extend import Service
from naiad.server import ServerApi

SMALLEST_BODY = 64 << 10
"""A smaller body is not worth it: its copy takes less time than the memory."""

Reserve = Callable[[str, int], memoryview | None]
"""Memory for a body of so many bytes for the model of that name; None for memory of the frontend's own."""


@runtime_checkable
class BodyMemory(Service, Protocol):
    """Has memory for the bodies of requests to some models."""

    name: str = "body-memory"

    def reserve(self, model: str, size: int) -> memoryview | None:
        """Writable memory of `size` bytes, aligned to 64, which is free when the last view of it is gone.

        None where the model does not read it, or where there is none. Its content is whatever an earlier body was.
        """


def body_memory_of(server: ServerApi) -> Reserve:
    """`BodyMemory.reserve` of the server; without the service a function that returns None."""
    try:
        return server.service(BodyMemory).reserve
    except UnsupportedError:
        return no_body_memory


def no_body_memory(model: str, size: int) -> memoryview | None:
    """None: a frontend without the service receives bodies in memory of its own."""
    return None
