"""All models of a server: how they are loaded, swapped and unloaded, losing no request."""

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from naiad._kernel.bounded_threads import BoundedThreads
from naiad._kernel.calls.load_waits import LoadWaits
from naiad._kernel.catalogue import Catalogue
from naiad._kernel.configs import not_found
from naiad._kernel.entries import LOADING, ModelEntry, VersionState
from naiad._kernel.generations import guarded, load_generation, prepare
from naiad._kernel.loading import Loader
from naiad._kernel.overrides import unpacked
from naiad._kernel.prepared import PreparedDependent
from naiad._kernel.repository import Fingerprints, ModelSource, find, is_folder_name, scan
from naiad._kernel.rotation import Folder, Rotation
from naiad._kernel.servables import Binder, refused
from naiad._kernel.served import ServedVersion
from naiad.errors import InvalidArgumentError, NaiadError, ShuttingDownError
from naiad.options import Settings
from naiad.reports import IndexEntry

_logger = logging.getLogger("naiad.model")
_DISK_THREADS = 4
"""So many folders are read or written at once."""


class Models(Catalogue):
    """Loads and unloads. Every method runs on the event loop's thread; what blocks is sent to threads.

    `load_waits` are the loads that wait for others; `closed` says that there will be no more.
    """

    def __init__(self, loader: Loader, settings: Settings) -> None:
        super().__init__([Path(root).absolute() for root in settings["model-repository"]])
        self._loader = loader
        self._compares_content = settings["model-control-mode"] != "none"
        self._load_slots = asyncio.Semaphore(settings["model-load-thread-count"])
        self.load_waits = LoadWaits()
        self._retries: int = settings["model-load-retry-count"]
        self._fingerprints = Fingerprints()
        self._disk = BoundedThreads("naiad-disk", _DISK_THREADS)
        self._rotation = Rotation(self, self._own, self._forget)
        self._binder = Binder(self, self._rotation)
        self._found: Mapping[str, Sequence[Path]] = {}
        self._reading, self._reads = asyncio.Lock(), 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loads: dict[str, asyncio.Task[None]] = {}
        self.closed = False

    def index(self, only_ready: bool = False) -> list[IndexEntry]:
        """Every model, version and state; a version that loads says how far its warmup is."""
        return self._loader.warmups.told_in(super().index(only_ready))

    async def read_folders(self) -> Mapping[str, Sequence[Path]]:
        """The folders of all models of the repositories, for `index` too. Raises NotFoundError for an unreadable one.

        Callers that come during a read share the next one: the folder that a caller has just made may have been missed.
        """
        awaited = self._reads + 1
        async with self._reading:
            if self._reads < awaited:
                self._reads += 1
                self._found, self.folders = await self._disk.run(_read, self.roots)
            return self._found

    async def fresh_index(self, only_ready: bool = False) -> list[IndexEntry]:
        """As `index`, over the folders as they are now; where these cannot be read, as they were."""
        if not only_ready:
            try:
                await self.read_folders()
            except NaiadError as error:
                _logger.warning("%s", error)
        return self.index(only_ready)

    async def load_all(self, names: Sequence[str] | None = None) -> None:
        """Load these models, or all of the repositories; a failure stays with its model.

        Raises NotFoundError for a repository that cannot be read.
        """
        found = await self.read_folders()
        wanted = sorted(found) if names is None else list(dict.fromkeys(names))
        await self._load_many({name: found.get(name, []) for name in wanted})

    async def load(self, name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload one model; the earlier generation serves until the new one is ready, or on if it fails.

        The models that it depends on are loaded with it where they do not serve. The load goes on when its caller goes
        away. Raises NotFoundError without such a folder, InvalidArgumentError with the reason when a version fails.
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
        folders = await self._disk.run(find, self.roots, name)
        if not folders and not files:
            raise not_found(name)
        await self._owned(name, self._load(name, folders, config, files or {}, again=True))
        entry = self.entries.get(name)
        if entry is not None:  # it may have been unloaded since
            entry.explicit = True

    async def unload(self, name: str, dependents: bool = False) -> None:
        """Take a model out of service; what it has taken in is still answered. Unknown models are out of it already.

        What depends on it goes out of service as well. With `dependents` so do the models that it depends on, that
        nobody asked for by name and no other model depends on.
        """
        entry = self.entries.get(name)
        if entry is None:
            return
        async with entry.lock:
            unneeded = self._binder.unneeded(entry) if dependents else []
            self._rotation.swap(entry, {})
            entry.retired()
            self._binder.follow(name)
        for each in unneeded:
            await self.unload(each, dependents)

    async def follow_disk(self) -> None:
        """Load what is new or changed in the repositories and unload what is gone."""
        found = await self.read_folders()
        gone = [name for name, entry in self.entries.items() if name not in found and not entry.unloaded]
        for name in gone:
            _logger.info("model '%s' is gone from the repositories", name, extra={"model": name})
            await self.unload(name)
        await self._load_many(found)

    @asynccontextmanager
    async def load_lent(self) -> AsyncIterator[None]:
        """Let one more model load during the block, in which the load of a model waits for that of another."""
        self._load_slots.release()
        async with self._loader.threads.lent():
            try:
                yield
            finally:
                await self._load_slots.acquire()  # before the thread, as every load gets them

    def has_work(self) -> bool:
        """Whether any version that is not freed has a request that is not over."""
        return any(version.outstanding for version in self._rotation.alive)

    async def give_up_loads(self) -> None:
        """Load nothing from now on; what is loading fails, and who waits for it is told at once."""
        self.closed = True
        tasks = set(self._tasks)
        for task in tasks:  # what retires is among them; `close` awaits that
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def finish_sequences(self, seconds: float) -> None:
        """Load nothing from now on, and start no sequence; those under way may go on for that long."""
        self.handover.begin(self._rotation.alive)
        await self.give_up_loads()
        await self.handover.finish(self._rotation.alive, seconds)

    async def close(self, grace: float) -> bool:
        """Answer what was taken in within `grace` seconds, then end every instance; whether all of it ended in time."""
        deadline = monotonic() + grace
        await self.give_up_loads()
        return await self._rotation.close(deadline - monotonic())

    async def _forget(self, entry: ModelEntry) -> None:
        """Know a model no more that was unloaded and that no repository has, or has any more."""
        name = entry.name
        if not entry.is_over():
            return
        folders = await self._disk.run(find, self.roots, name)
        if not folders and entry.is_over() and name not in self._loads and self.entries.get(name) is entry:
            del self.entries[name]
            self._fingerprints.forget(root / name for root in self.roots)

    # How a load goes

    async def _load_many(self, found: Mapping[str, Sequence[Path]]) -> None:
        await asyncio.gather(*(self._load_quietly(name, folders, explicit=True) for name, folders in found.items()))

    async def _load_quietly(self, name: str, folders: Sequence[Path], explicit: bool = False) -> None:
        if not folders:
            self.entries.setdefault(name, ModelEntry(name)).reason = str(not_found(name))
            _logger.error("%s", not_found(name), extra={"model": name})
            return
        try:
            await self._owned(name, self._load(name, folders))
        except NaiadError as error:
            _logger.error("model '%s' is UNAVAILABLE: %s", name, error, extra={"model": name})
        entry = self.entries.get(name)
        if entry is not None and explicit:
            entry.explicit = True

    async def _owned(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Await a task of our own: it goes on when the caller is cancelled, and `close` gives it up."""
        task = self._loads[name] = self._own(work)
        task.add_done_callback(functools.partial(self._load_ended, name))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise ShuttingDownError("the server is stopping; the load was given up") from None
            raise
        finally:
            del task  # which holds the error, whose traceback holds this frame, and the files of the request

    def _load_ended(self, name: str, task: asyncio.Task[None]) -> None:
        if self._loads.get(name) is task:
            del self._loads[name]

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
        entry = self.entries.setdefault(name, ModelEntry(name))
        entry.ambiguous = len(folders) > 1
        async with entry.lock:
            fingerprint = await self._fingerprint(folders)
            same = fingerprint is not None and fingerprint == entry.fingerprint and not (config or entry.overridden)
            if same and not (again and entry.has_failed()):
                return
            entry.unloaded, entry.fingerprint, entry.overridden, entry.reason = False, fingerprint, bool(config), ""
            folder = None
            try:
                if files:
                    folder = await guarded(name, self._disk.run(unpacked, files))
                    folders = [Path(folder.name)]
                await self._replace_generation(entry, _source(name, folders, config), folder, again)
            except NaiadError as error:
                entry.failed(error)
                self._binder.follow(name)
                raise
            finally:
                if folder is not None and entry.folder is not folder:
                    await self._disk.run(folder.cleanup)

    async def _fingerprint(self, folders: Sequence[Path]) -> str | None:
        """What the folders hold, or None where nobody asks twice: reading all weights would double the start."""
        if not self._compares_content:
            return None
        return await self._disk.run(lambda: "\n".join(map(self._fingerprints.of, folders)))

    async def _replace_generation(
        self, entry: ModelEntry, source: ModelSource, folder: Folder | None, again: bool
    ) -> None:
        started = monotonic()
        async with self._load_slots:
            prepared = await prepare(self._loader, source, self._retries)
            for context in prepared.contexts:
                if context.version not in entry.serving:
                    entry.states[context.version] = VersionState(LOADING)
            versions: Mapping[int, ServedVersion] = {}
            if not isinstance(prepared, PreparedDependent):
                versions = await load_generation(self._loader, prepared, self._retries)
                entry.prepared, entry.depends = None, ()
        if isinstance(prepared, PreparedDependent):
            versions, folder = await self._bound(entry, prepared, again), None
        self._rotation.swap(entry, versions, folder)
        entry.succeeded()
        self._binder.follow(entry.name)
        for version, loaded in versions.items():
            loaded.counters.load_seconds = monotonic() - started
            _logger.info(
                "model '%s' version %d is READY after %.3f s",
                entry.name,
                version,
                loaded.counters.load_seconds,
                extra={"model": entry.name, "version": str(version)},
            )

    async def _bound(self, entry: ModelEntry, prepared: PreparedDependent, again: bool) -> Mapping[int, ServedVersion]:
        """Its versions over those that it depends on, once these are loaded; it may come into service only later."""
        dependencies = prepared.servable.dependencies
        depended, entry.depends = entry.depends, dependencies
        others = [name for name in dependencies if not self._binder.leads_back(entry.name, name)]
        rings = await asyncio.gather(*(self._ensure(prepared.kind, entry.name, name, again) for name in others))
        try:
            if any(rings):
                raise InvalidArgumentError("; ".join(filter(None, rings)))
            versions = self._binder.bound(prepared, entry.serving)
        except NaiadError as error:
            if entry.serving:
                entry.depends = depended
            else:
                entry.prepared = prepared
            raise refused(entry.name, error) from error
        entry.prepared = prepared
        return versions

    async def _ensure(self, kind: str, dependent: str, name: str, again: bool) -> str:
        """Wait for the model's load, or load it, unless it serves, or has failed and is not tried `again`.

        Returns why it cannot be waited for, where its load waits for the dependent, which is of that kind.
        """
        task, entry = self._loads.get(name), self.entries.get(name)
        if task is not None and not task.done():
            if not self.load_waits.leads_to(name, dependent):
                with self.load_waits.waiting(dependent, name):
                    await asyncio.wait([task])
            elif entry is None or not entry.serving:
                return (
                    f"{kind} '{dependent}' needs model '{name}', which is being loaded and waits for '{dependent}' "
                    f"itself; let the model not ask for the {kind}, which comes into service as soon as the model does"
                )
            return ""
        if entry is not None and (entry.serving or (entry.has_failed() and not again)):
            return ""
        with self.load_waits.waiting(dependent, name):
            folders = await self._disk.run(find, self.roots, name)
            if folders:
                await self._load_quietly(name, folders)
        return ""


def _read(roots: Sequence[Path]) -> tuple[Mapping[str, Sequence[Path]], Mapping[str, IndexEntry]]:
    found = scan(roots)
    return found, {name: IndexEntry(name) for name in sorted(found)}


def _source(name: str, folders: Sequence[Path], config: str) -> ModelSource:
    if len(folders) > 1:
        places = ", ".join(str(folder.parent) for folder in folders)
        raise InvalidArgumentError(
            f"failed to poll model '{name}': not unique across all model repositories; "
            f"model appears in two or more repositories: {places}"
        )
    return ModelSource(name, folders[0], config)
