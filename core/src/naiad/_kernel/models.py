"""All models of a server: which versions serve; how they are loaded, swapped and unloaded, losing no request."""

import asyncio
import logging
import tempfile
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TypeVar

from naiad._kernel.entries import LOADING, READY, UNAVAILABLE, UNLOADED, UNLOADING, ModelEntry, VersionState
from naiad._kernel.loading import Loader, PreparedModel, not_found, write_overrides
from naiad._kernel.repository import Fingerprints, ModelSource, find, is_folder_name, scan
from naiad._kernel.version import ModelVersion
from naiad.errors import InternalError, InvalidArgumentError, NaiadError, NotFoundError
from naiad.options import Settings
from naiad.reports import IndexEntry, ModelStatistics, Readiness

_logger = logging.getLogger("naiad.model")
_T = TypeVar("_T")
_Folder = tempfile.TemporaryDirectory[str]


class Models:
    """Every method runs on the event loop's thread; what blocks is sent to threads."""

    def __init__(self, loader: Loader, settings: Settings) -> None:
        self._loader = loader
        self._roots = [Path(root).absolute() for root in settings["model-repository"]]
        self._slots = asyncio.Semaphore(settings["model-load-thread-count"])
        self._retries: int = settings["model-load-retry-count"]
        self._fingerprints = Fingerprints()
        self._entries: dict[str, ModelEntry] = {}
        self._ready: dict[str, dict[int, ModelVersion]] = {}
        self._retiring: set[asyncio.Task[None]] = set()

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
        if expects_models and not self._entries:
            roots = ", ".join(map(str, self._roots)) or "none is given"
            reasons.append(f"there is no model to serve in the model repositories ({roots})")
        return Readiness(not reasons, tuple(reasons))

    def statistics(self, name: str = "", version: int = 0) -> list[ModelStatistics]:
        """The counters of the READY versions. Raises NotFoundError or ModelNotReadyError for a model that has none."""
        if not name:
            return [each.statistics() for model in sorted(self._ready) for each in self._in_order(model)]
        self.find(name, version)
        return [each.statistics() for each in self._in_order(name) if version in (0, each.version)]

    def index(self, only_ready: bool = False) -> list[IndexEntry]:
        """Every model folder on disk, and every version that was asked for with its state and the reason for it."""
        names = set(self._entries)
        try:
            names.update(scan(self._roots))
        except NaiadError as error:
            _logger.warning("%s", error)
        found = []
        for name in sorted(names):
            entry = self._entries.get(name)
            found.extend(entry.index() if entry is not None else [IndexEntry(name)])
        return [entry for entry in found if entry.state == READY] if only_ready else found

    def outstanding(self) -> int:
        """How many requests wait or execute, over all models."""
        return sum(version.outstanding() for entry in self._entries.values() for version in entry.serving.values())

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

        Raises NotFoundError without such a folder, InvalidArgumentError with the reason when a version fails.
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
        await self._load(name, folders, config, files or {})

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

    async def close(self, grace: float) -> bool:
        """Answer what was taken in within `grace` seconds, then end every instance; whether all of it ended in time."""
        deadline = monotonic() + grace
        serving = [version for entry in self._entries.values() for version in entry.serving.values()]
        self._ready.clear()
        waits = {asyncio.ensure_future(version.drain()) for version in serving} | self._retiring
        if waits:
            _, late = await asyncio.wait(waits, timeout=grace)
            for wait in late:
                wait.cancel()
        left = max(0.1, deadline - monotonic())
        ended = await asyncio.gather(*(version.close(left) for version in serving))
        for entry in self._entries.values():
            if entry.folder is not None:
                entry.folder.cleanup()
        return all(ended)

    # How a load goes

    async def _load_quietly(self, name: str, folders: Sequence[Path]) -> None:
        if not folders:
            self._entries.setdefault(name, ModelEntry(name)).reason = str(not_found(name))
            _logger.error("%s", not_found(name), extra={"model": name})
            return
        try:
            await self._load(name, folders, "", {})
        except NaiadError as error:
            _logger.error("model '%s' is UNAVAILABLE: %s", name, error, extra={"model": name})

    async def _load(self, name: str, folders: Sequence[Path], config: str, files: Mapping[str, bytes]) -> None:
        entry = self._entries.setdefault(name, ModelEntry(name))
        async with entry.lock, self._slots:
            digests = [await asyncio.to_thread(self._fingerprints.of, folder) for folder in folders]
            fingerprint = "\n".join(digests)
            if not config and not entry.overridden and not entry.unloaded and fingerprint == entry.fingerprint:
                return
            entry.unloaded, entry.fingerprint, entry.overridden, entry.reason = False, fingerprint, bool(config), ""
            folder = _Folder(prefix="naiad-", ignore_cleanup_errors=True) if files else None
            try:
                if folder is not None:
                    await asyncio.to_thread(write_overrides, files, Path(folder.name))
                    folders = [Path(folder.name)]
                await self._replace_generation(entry, _source(name, folders, config), folder)
            except NaiadError as error:
                entry.failed(error)
                if folder is not None:
                    folder.cleanup()
                raise

    async def _replace_generation(self, entry: ModelEntry, source: ModelSource, folder: _Folder | None) -> None:
        started = monotonic()
        prepared = await _guarded(entry.name, asyncio.to_thread(self._loader.prepare, source))
        for context in prepared.contexts:
            if context.version not in entry.serving:
                entry.states[context.version] = VersionState(LOADING)
        versions = await self._load_versions(entry.name, prepared)
        self._swap(entry, {version.version: version for version in versions}, folder)
        entry.reason = entry.reload_error = ""
        for version in versions:
            entry.states[version.version] = VersionState(READY)
            _logger.info(
                "model '%s' version %d is READY after %.3f s",
                entry.name,
                version.version,
                monotonic() - started,
                extra={"model": entry.name, "version": str(version.version)},
            )

    async def _load_versions(self, name: str, prepared: PreparedModel) -> list[ModelVersion]:
        loads = (self._load_version(name, prepared, index) for index in range(len(prepared.contexts)))
        results = await asyncio.gather(*loads, return_exceptions=True)
        versions = [result for result in results if isinstance(result, ModelVersion)]
        errors = [result for result in results if isinstance(result, BaseException)]
        if errors:
            await asyncio.gather(*(version.close() for version in versions))
            raise errors[0]
        return versions

    async def _load_version(self, name: str, prepared: PreparedModel, index: int) -> ModelVersion:
        context = prepared.contexts[index]
        for tries_left in range(self._retries, -1, -1):
            try:
                return await _guarded(name, self._loader.load(prepared, context))
            except NaiadError as error:
                if not tries_left:
                    raise InvalidArgumentError(
                        f"load failed for model '{name}': version {context.version} is at UNAVAILABLE state: {error};"
                    ) from error
                _logger.warning("loading model '%s' version %d failed, trying again: %s", name, context.version, error)
        raise InternalError(f"loading model '{name}' was never tried")

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
        task = asyncio.get_running_loop().create_task(_end(entry, list(retired.values()), old_folder))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    def _in_order(self, name: str) -> list[ModelVersion]:
        return [self._ready[name][version] for version in self.ready_versions(name)]


async def _end(entry: ModelEntry, retired: Sequence[ModelVersion], folder: _Folder | None) -> None:
    """Answer what the retired versions took in, then free them."""
    for version in retired:
        await version.drain()
        await version.close()
        if version.version not in entry.serving:
            entry.states[version.version] = VersionState(UNAVAILABLE, UNLOADED)
    if folder is not None:
        await asyncio.to_thread(folder.cleanup)


async def _guarded(name: str, work: Awaitable[_T]) -> _T:
    """What loading raises, as a NaiadError: a broken model must take nothing else down."""
    try:
        return await work
    except NaiadError:
        raise
    except Exception as error:
        _logger.exception("loading model '%s' failed", name, extra={"model": name})
        raise InternalError(f"{type(error).__name__}: {error or 'no message'}") from error


def _source(name: str, folders: Sequence[Path], config: str) -> ModelSource:
    if len(folders) > 1:
        places = ", ".join(str(folder.parent) for folder in folders)
        raise InvalidArgumentError(
            f"failed to poll model '{name}': not unique across all model repositories; "
            f"model appears in two or more repositories: {places}"
        )
    return ModelSource(name, folders[0], config)
