"""All models of a server: which versions serve; how they are loaded, swapped and unloaded, losing no request."""

import asyncio
import logging
import tempfile
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from naiad._kernel.draining import drained
from naiad._kernel.entries import LOADING, READY, UNAVAILABLE, UNLOADED, UNLOADING, ModelEntry, VersionState
from naiad._kernel.generations import guarded, load_generation, prepare
from naiad._kernel.configs import not_found
from naiad._kernel.loading import Loader
from naiad._kernel.overrides import unpacked
from naiad._kernel.repository import Fingerprints, ModelSource, find, is_folder_name, scan
from naiad._kernel.version import ModelVersion
from naiad.errors import InvalidArgumentError, NaiadError, NotFoundError, ShuttingDownError
from naiad.options import Settings
from naiad.reports import IndexEntry, ModelStatistics, Readiness

_logger = logging.getLogger("naiad.model")
_Folder = tempfile.TemporaryDirectory[str]


class Models:
    """Every method runs on the event loop's thread; what blocks is sent to threads.

    `load_slots` are the loads that may go on at once; `closed` says that there will be no more.
    """

    def __init__(self, loader: Loader, settings: Settings) -> None:
        self._loader = loader
        self._roots = [Path(root).absolute() for root in settings["model-repository"]]
        self._compares_content = settings["model-control-mode"] != "none"
        self.load_slots = asyncio.Semaphore(settings["model-load-thread-count"])
        self._retries: int = settings["model-load-retry-count"]
        self._fingerprints = Fingerprints()
        self._entries: dict[str, ModelEntry] = {}
        self._ready: dict[str, dict[int, ModelVersion]] = {}
        self._alive: set[ModelVersion] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.closed = False

    # Asking

    def find(self, name: str, version: int = 0) -> ModelVersion:
        """The READY version, the largest for version 0. Raises NotFoundError or ModelNotReadyError with the reason."""
        versions = self._ready.get(name)
        found = versions.get(version) if versions is not None else None
        if found is not None:
            return found
        entry = self._entries.get(name)
        if entry is None:
            raise NotFoundError(f"Request for unknown model: '{name}' is not found")
        raise entry.missing(version)

    def ready_versions(self, name: str) -> tuple[int, ...]:
        """The versions of a model that serve, ascending; none for an unknown model."""
        return tuple(sorted(version for version in self._ready.get(name, ()) if version))

    def readiness(self, expects_models: bool) -> Readiness:
        """Ready while every model that was asked for serves all its versions; the reasons name each that does not.

        With `expects_models`, a server without any model is not ready either.
        """
        reasons = [reason for entry in self._entries.values() for reason in entry.not_ready_reasons()]
        if expects_models and all(entry.unloaded for entry in self._entries.values()):
            roots = ", ".join(map(str, self._roots)) or "none is given"
            reasons.append(f"there is no model to serve in the model repositories ({roots})")
        return Readiness(not reasons, tuple(reasons))

    def failures(self) -> list[str]:
        """Why models could not be loaded, one reason each; an instance that is not ready yet is no such reason."""
        failed = [entry for entry in self._entries.values() if entry.has_failed()]
        return [reason for entry in failed for reason in entry.not_ready_reasons()]

    def serving(self) -> list[ModelVersion]:
        """The READY versions of all models."""
        return [each for model in sorted(self._ready) for each in self._in_order(model)]

    def statistics(self, name: str = "", version: int = 0) -> list[ModelStatistics]:
        """The counters of the READY versions. Raises NotFoundError or ModelNotReadyError for a model that has none."""
        if not name:
            return [each.statistics() for each in self.serving()]
        self.find(name, version)
        return [each.statistics() for each in self._in_order(name) if version in (0, each.version)]

    def index(self, only_ready: bool = False) -> list[IndexEntry]:
        """Every model folder on disk, and every version that was asked for with its state and the reason for it."""
        names = {name for name, entry in self._entries.items() if not entry.is_over()}
        try:
            names.update(scan(self._roots))
        except NaiadError as error:
            _logger.warning("%s", error)
        found = []
        for name in sorted(names):
            entry = self._entries.get(name)
            found.extend(entry.index() if entry is not None else [IndexEntry(name)])
        return [entry for entry in found if entry.state == READY] if only_ready else found

    # Loading and unloading

    async def load_all(self, names: Sequence[str] | None = None) -> None:
        """Load these models, or all of the repositories; a failure stays with its model.

        Raises NotFoundError for a repository that cannot be read.
        """
        found = await asyncio.to_thread(scan, self._roots)
        wanted = sorted(found) if names is None else list(dict.fromkeys(names))
        await asyncio.gather(*(self._load_quietly(name, found.get(name, [])) for name in wanted))

    async def load(self, name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload one model; the earlier generation serves until the new one is ready, or on if it fails.

        The load goes on when its caller goes away. Raises NotFoundError without such a folder, InvalidArgumentError
        with the reason when a version fails.
        """
        name = name.strip()
        if not name:
            raise InvalidArgumentError("Model name cannot be empty. Please enter a valid name to deploy.")
        if not is_folder_name(name):
            raise InvalidArgumentError(
                f"invalid model name '{name[:80]}', model name must not contain path traversal characters or be "
                "longer than a folder's name can be"
            )
        if files and not config:
            raise InvalidArgumentError("Load parameter 'config' must be specified for model file override")
        folders = await asyncio.to_thread(find, self._roots, name)
        if not folders and not files:
            raise not_found(name)
        await self._owned(self._load(name, folders, config, files or {}, again=True))

    async def unload(self, name: str) -> None:
        """Take a model out of service; what it has taken in is still answered. Unknown models are out of it already."""
        entry = self._entries.get(name)
        if entry is None:
            return
        async with entry.lock:
            self._swap(entry, {}, None)
            entry.retired()

    async def follow_disk(self) -> None:
        """Load what is new or changed in the repositories and unload what is gone."""
        found = await asyncio.to_thread(scan, self._roots)
        gone = [name for name, entry in self._entries.items() if name not in found and not entry.unloaded]
        for name in gone:
            _logger.info("model '%s' is gone from the repositories", name, extra={"model": name})
            await self.unload(name)
        await asyncio.gather(*(self._load_quietly(name, folders) for name, folders in found.items()))

    async def give_up_loads(self) -> None:
        """Load nothing from now on; what is loading fails, and who waits for it is told at once."""
        self.closed = True
        tasks = set(self._tasks)
        for task in tasks:  # what retires is among them; `close` awaits that
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self, grace: float) -> bool:
        """Answer what was taken in within `grace` seconds, then end every instance; whether all of it ended in time."""
        deadline = monotonic() + grace
        await self.give_up_loads()
        drains = asyncio.ensure_future(drained(self._alive))
        await asyncio.wait([drains], timeout=grace)
        drains.cancel()
        self._ready.clear()
        left = max(0.1, deadline - monotonic())
        ended = await asyncio.gather(*(version.close(left) for version in self._alive))
        for entry in self._entries.values():
            if entry.folder is not None:
                await asyncio.to_thread(entry.folder.cleanup)
        return all(ended)

    # How a load goes

    async def _load_quietly(self, name: str, folders: Sequence[Path]) -> None:
        if not folders:
            self._entries.setdefault(name, ModelEntry(name)).reason = str(not_found(name))
            _logger.error("%s", not_found(name), extra={"model": name})
            return
        try:
            await self._owned(self._load(name, folders))
        except NaiadError as error:
            _logger.error("model '%s' is UNAVAILABLE: %s", name, error, extra={"model": name})

    async def _owned(self, work: Coroutine[Any, Any, None]) -> None:
        """Await a task of our own: it goes on when the caller is cancelled, and `close` gives it up."""
        task = self._own(work)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise ShuttingDownError("the server is stopping; the load was given up") from None
            raise

    def _own(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _load(
        self,
        name: str,
        folders: Sequence[Path],
        config: str = "",
        files: Mapping[str, bytes] | None = None,
        again: bool = False,
    ) -> None:
        """`again` tries what has failed although nothing has changed."""
        if self.closed:
            raise ShuttingDownError("the server is stopping and loads no model")
        entry = self._entries.setdefault(name, ModelEntry(name))
        async with entry.lock, self.load_slots:
            fingerprint = await asyncio.to_thread(self._fingerprint, folders)
            same = fingerprint is not None and fingerprint == entry.fingerprint and not (config or entry.overridden)
            if same and not (again and entry.has_failed()):
                return
            entry.unloaded, entry.fingerprint, entry.overridden, entry.reason = False, fingerprint, bool(config), ""
            folder = None
            try:
                if files:
                    folder = await guarded(name, asyncio.to_thread(unpacked, files))
                    folders = [Path(folder.name)]
                await self._replace_generation(entry, _source(name, folders, config), folder)
            except NaiadError as error:
                entry.failed(error)
                raise
            finally:
                if folder is not None and entry.folder is not folder:
                    await asyncio.to_thread(folder.cleanup)

    def _fingerprint(self, folders: Sequence[Path]) -> str | None:
        """What the folders hold, or None where nobody asks twice: reading all weights would double the start."""
        return "\n".join(map(self._fingerprints.of, folders)) if self._compares_content else None

    async def _replace_generation(self, entry: ModelEntry, source: ModelSource, folder: _Folder | None) -> None:
        started = monotonic()
        prepared = await prepare(self._loader, source, self._retries)
        for context in prepared.contexts:
            if context.version not in entry.serving:
                entry.states[context.version] = VersionState(LOADING)
        versions = await load_generation(self._loader, prepared, self._retries)
        self._alive.update(versions.values())
        self._swap(entry, versions, folder)
        entry.succeeded()
        for version, loaded in versions.items():
            loaded.load_seconds = monotonic() - started
            _logger.info(
                "model '%s' version %d is READY after %.3f s",
                entry.name,
                version,
                loaded.load_seconds,
                extra={"model": entry.name, "version": str(version)},
            )

    def _swap(self, entry: ModelEntry, successors: dict[int, ModelVersion], folder: _Folder | None) -> None:
        """Let the successors serve from now on, and end the others once they have answered what they took in."""
        retired, entry.serving = entry.serving, successors
        old_folder, entry.folder = entry.folder, folder
        if successors:
            self._ready[entry.name] = {**successors, 0: successors[max(successors)]}
        else:
            self._ready.pop(entry.name, None)
        for version in retired:
            if version not in successors:
                entry.states[version] = VersionState(UNLOADING)
        self._own(self._retire(entry, list(retired.values()), old_folder))

    async def _retire(self, entry: ModelEntry, versions: Sequence[ModelVersion], folder: _Folder | None) -> None:
        """Answer what the versions took in, then free them."""
        try:
            await asyncio.gather(*(self._end(entry, version) for version in versions))
        finally:
            if folder is not None:
                await asyncio.to_thread(folder.cleanup)

    async def _end(self, entry: ModelEntry, version: ModelVersion) -> None:
        await version.drain()
        await version.close()
        self._alive.discard(version)
        state = entry.states.get(version.version)
        if state is not None and state.state == UNLOADING:
            entry.states[version.version] = VersionState(UNAVAILABLE, UNLOADED)

    def _in_order(self, name: str) -> list[ModelVersion]:
        return [self._ready[name][version] for version in self.ready_versions(name)]


def _source(name: str, folders: Sequence[Path], config: str) -> ModelSource:
    if len(folders) > 1:
        places = ", ".join(str(folder.parent) for folder in folders)
        raise InvalidArgumentError(
            f"failed to poll model '{name}': not unique across all model repositories; "
            f"model appears in two or more repositories: {places}"
        )
    return ModelSource(name, folders[0], config)
