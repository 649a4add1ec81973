"""Loading and unloading of models by models, also by one that is being loaded itself."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from naiad._kernel.calls.load_waits import LoadWaits
from naiad._kernel.served import ServedVersion
from naiad.errors import InvalidArgumentError, NaiadError
from naiad.types import Request

Load = Callable[[str, str, Mapping[str, bytes] | None], Awaitable[None]]
Unload = Callable[[str, bool], Awaitable[None]]


class ServedModels(Protocol):
    """The models of a server, as models that call others see them. For the event loop's thread."""

    @property
    def closed(self) -> bool:
        """Whether there will be no more loads."""
        ...

    @property
    def load_waits(self) -> LoadWaits:
        """The loads that wait for others."""
        ...

    def load_lent(self) -> AbstractAsyncContextManager[None]:
        """Let one more model load during the block, in which the load of a model waits for that of another."""
        ...

    def find(self, name: str, version: int = 0) -> ServedVersion:
        """The version of that number. Raises NotFoundError or ModelNotReadyError."""
        ...

    def version_for(self, request: Request) -> ServedVersion:
        """The version that takes a request. Raises NotFoundError or ModelNotReadyError."""
        ...


class ModelControl:
    """What models ask of the life of others. For the event loop's thread.

    A model that loads another in its own load waits for it with its own name taken, and with one of the few loads that
    may go on at once, perhaps on one of their threads. So both are lent meanwhile, and a ring of models that load each
    other is refused.
    """

    def __init__(self, models: Callable[[], ServedModels], load: Load, unload: Unload) -> None:
        self._models = models
        self._load = load
        self._unload = unload

    async def load(self, asker: str, name: str, config: str, files: Mapping[str, bytes] | None) -> None:
        """Load a model for `asker`, the name of a model that is being loaded, "" for all others."""
        async with self._waiting(asker, name):
            await self._load(name, config, files)

    async def unload(self, asker: str, name: str, unload_dependents: bool) -> None:
        """Unload a model for `asker`; when the server stops, all are unloaded anyway."""
        if self._models().closed:
            return
        async with self._waiting(asker, name):
            await self._unload(name, unload_dependents)

    def ready(self, name: str, version: int) -> bool:
        """Whether a version can serve."""
        try:
            return self._models().find(name, version).readiness().ready
        except NaiadError:
            return False

    @asynccontextmanager
    async def _waiting(self, asker: str, name: str) -> AsyncIterator[None]:
        if not asker:
            yield
            return
        waits = self._models().load_waits
        if waits.leads_to(name, asker):
            raise InvalidArgumentError(
                f"model '{asker}' is being loaded and asks to load or unload '{name}', which waits for that load to "
                "end; load models that need each other from outside, or after the load"
            )
        with waits.waiting(asker, name):
            async with self._models().load_lent():
                yield
