"""Loading, swapping and unloading the models of a server without losing a request."""

import asyncio
import functools
import logging
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from naiad._lifecycle.binding import Binder, refused
from naiad._lifecycle.bounded_threads import lent
from naiad._lifecycle.load_waits import LoadWaits
from naiad._lifecycle.loading import Loader
from naiad._lifecycle.model_record import LOADING, ModelRecord, VersionState
from naiad._lifecycle.model_registry import ModelRegistry
from naiad._lifecycle.prepared import Held, PreparedDependent, release
from naiad._lifecycle.repository import RepositoryReader, not_found
from naiad._lifecycle.servables import has_requests, loading
from naiad._lifecycle.version_swapper import VersionSwapper
from naiad.errors import InvalidArgumentError, NaiadError, ShuttingDownError
from naiad.options import Settings
from naiad.reports import IndexEntry
from naiad.servables import Servable
from naiad_config import Files, Paths
from naiad_config.overrides import unpacked
from naiad_config.repository import model_name
from naiad_config.stores import Location, Root, only
from naiad_config.user_code import foreign_cause

_logger = logging.getLogger("naiad.model")


class Models(ModelRegistry):
    """Loads and unloads. Every method runs on the event loop's thread; what blocks is sent to threads.

    `closed` says that there will be no more loads; `alive` are all versions that are not freed.
    """

    def __init__(self, loader: Loader, settings: Settings, roots: Sequence[Root]) -> None:
        super().__init__(RepositoryReader(roots, compares_content=settings["model-control-mode"] != "none"))
        self._loader = loader
        self._load_slots = asyncio.Semaphore(settings["model-load-thread-count"])
        self._load_waits = LoadWaits()
        self._swapper = VersionSwapper(self, self._own, self._forget)
        self.alive = self._swapper.alive
        self._binder = Binder(self, self._swapper)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loads: dict[str, asyncio.Task[None]] = {}
        self.closed = False

    def index(self, only_ready: bool = False) -> list[IndexEntry]:
        """Every model, version and state; why its repository is away, or the progress of the warm-up of a load."""
        return list(map(self._with_progress, super().index(only_ready)))

    def _with_progress(self, entry: IndexEntry) -> IndexEntry:
        version = self._loader.starting.get((entry.name, entry.version)) if entry.state == LOADING else None
        listed = self.repositories.index.get(entry.name, entry)
        reason = listed.reason if version is None else version.progress()
        return entry if entry.reason or not reason else replace(entry, reason=reason)

    async def fresh_index(self, only_ready: bool = False) -> list[IndexEntry]:
        """As `index`, over the folders as they are now; where these cannot be read, as they were."""
        if not only_ready:
            try:
                await self.repositories.read()
            except NaiadError as error:
                _logger.warning("%s", error)
        return self.index(only_ready)

    async def load_all(self, names: Sequence[str] | None = None) -> Mapping[str, Sequence[str]]:
        """Load these models, or all of the repositories; the reasons of those that failed, which are in the log.

        An instance that is not ready yet is no failure. Raises NotFoundError for a repository that cannot be read.
        """
        folders = await self.repositories.read()
        listed = sorted(folders) if names is None else list(dict.fromkeys(names))
        for name in listed:
            self.records.setdefault(name, ModelRecord(name))
        await self._load_many({name: folders.get(name, []) for name in listed})
        failed = [record for name in listed if (record := self.records.get(name)) is not None and record.has_failed()]
        return {record.name: record.not_ready_reasons() for record in failed}

    async def load(self, name: str, config: str = "", files: Files | None = None, sent: Paths = ()) -> None:
        """Load or reload one model; the earlier generation serves until the new one is ready, or on if it fails.

        The models that it depends on are loaded with it where they do not serve. The load goes on when its caller goes
        away. Raises NotFoundError without such a folder, InvalidArgumentError with the reason when a version fails.
        """
        folders = await self.repositories.find(name)
        if not folders:
            name = model_name(name)
            folders = await self.repositories.find(name)
        if files and not config:
            raise InvalidArgumentError("Load parameter 'config' must be specified for model file override")
        if not folders and not files:
            raise not_found(name)
        try:
            await self._owned(name, self._load(name, folders, config, files, sent, again=True, explicit=True))
        except NaiadError:
            if name in self.records:
                await self._forget(self.records[name])
            raise

    async def unload(self, name: str, dependents: bool = False) -> None:
        """Take a model and what depends on it out of service; what it has taken in is still answered.

        With `dependents` so are the models that it depends on, that were not loaded by name and that no other model
        depends on.
        """
        if (record := self.records.get(name)) is None:
            return
        async with record.lock:
            _logger.debug("unloading model '%s', which answers what it has taken in", name)
            unneeded = self._binder.unneeded(record) if dependents else []
            self._swapper.swap(record, {})
            record.retired()
            self._binder.follow(name)
        for each in unneeded:
            await self.unload(each, dependents)

    async def follow_disk(self) -> None:
        """Load what is new or changed in the repositories and unload what is gone."""
        folders = await self.repositories.read()
        gone = [name for name, record in self.records.items() if name not in folders and not record.unloaded]
        for name in gone:
            _logger.info("model '%s' is gone from the repositories", name, extra={"model": name})
            await self.unload(name)
        await self._load_many(folders)

    @asynccontextmanager
    async def nested(self, waiter: str, name: str) -> AsyncIterator[None]:
        """A load, unless it is "", lends its slot and thread while it waits. Raises InvalidArgumentError in a ring."""
        if not waiter:
            yield
            return
        self._load_waits.check(waiter, name)
        with self._load_waits.waiting(waiter, name):
            async with lent(self._loader.threads.slots), lent(self._load_slots):  # back in the order of loads
                yield

    def has_work(self) -> bool:
        """Whether any version that is not freed has a request that is not over."""
        return any(map(has_requests, self.alive))

    async def give_up_loads(self) -> None:
        """Load nothing from now on; loads under way fail at once."""
        self.closed = True
        tasks = set(self._tasks)
        for task in tasks:  # what retires is among them; `close` awaits that
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def finish_sequences(self, seconds: float) -> None:
        """Load nothing from now on, and start no sequence; those under way may go on for that long."""
        self.sticky_routing.begin(self.alive)
        await self.give_up_loads()
        await self.sticky_routing.finish(self.alive, seconds)

    async def close(self, grace: float) -> bool:
        """Answer what was taken in within `grace` seconds, then end every instance; whether all of it ended in time."""
        deadline = monotonic() + grace
        await self.give_up_loads()
        return await self._swapper.close(deadline - monotonic())

    async def _forget(self, record: ModelRecord) -> None:
        """Drop the record of an unloaded model that is in no repository."""
        name = record.name
        if not record.is_over():
            return
        folders = await self.repositories.find(name)
        if not folders and record.is_over() and name not in self._loads and self.records.get(name) is record:
            del self.records[name]
            self.repositories.forget(name)

    # The steps of a load

    async def _load_many(self, models: Mapping[str, Sequence[Location]]) -> None:
        await asyncio.gather(*(self._load_quietly(name, folders, explicit=True) for name, folders in models.items()))

    async def _load_quietly(self, name: str, folders: Sequence[Location], explicit: bool, again: bool = False) -> None:
        if not folders:
            self.records.setdefault(name, ModelRecord(name)).reason = str(not_found(name))
            _logger.error("%s", not_found(name), extra={"model": name})
            return
        with suppress(NaiadError):  # it was logged
            await self._owned(name, self._load(name, folders, again=again, explicit=explicit))

    async def _owned(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Await the work in a task of its own, which goes on when the caller is cancelled; `close` cancels it."""
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
        folders: Sequence[Location],
        config: str = "",
        files: Files | None = None,
        sent: Paths = (),
        again: bool = False,
        explicit: bool = False,
    ) -> None:
        """`sent` are the paths of a client's files; `again` retries what failed unchanged, `explicit` is by name."""
        if self.closed:
            raise ShuttingDownError("the server is stopping and loads no model")
        record = self.records.setdefault(name, ModelRecord(name))
        record.ambiguous, record.explicit = len(folders) > 1, explicit or record.explicit
        async with record.lock:
            fingerprint = await self.repositories.fingerprint(folders)
            same = fingerprint is not None and fingerprint == record.fingerprint and not (config or record.overridden)
            if same and not (again and record.has_failed()):
                return
            is_idle = record.unloaded or not (record.serving or record.states or record.reason)
            record.unloaded, record.reason = False, ""
            record.fingerprint, record.overridden = fingerprint, bool(config)
            held: Held = []
            try:
                if files:
                    with loading(name):
                        folder = await self.repositories.threads.run(unpacked, files, folders)
                    held, folders = [folder], [Path(folder.name)]
                await self._replace_generation(record, only(name, folders), config, held, sent, again)
            except NaiadError as error:
                if config and is_idle:  # it was not to serve, and is as it was
                    record.retired()
                else:
                    record.failed(error)
                if not record.serving:
                    self._binder.follow(name)
                end = "was not reloaded and serves on as it was" if record.serving else "is UNAVAILABLE"
                why, extra = "; ".join(error.reason.splitlines()), {"model": name}
                _logger.error("model '%s' %s: %s", name, end, why, exc_info=foreign_cause(error), extra=extra)
                error.args = (f"failed to load '{name}', {error}",)  # what clients of Triton look for
                raise
            finally:
                if held and record.held is not held:
                    await self.repositories.threads.run(release, held, sys.exception())

    async def _replace_generation(
        self, record: ModelRecord, directory: Location, config: str, held: Held, sent: Paths, again: bool
    ) -> None:
        started = monotonic()
        async with self._load_slots:
            prepared = await self._loader.prepare(record.name, directory, config, held, sent)
            _logger.debug("loading model '%s' (%s) from %s", record.name, prepared.config.backend, directory)
            for context in prepared.contexts:
                if context.version not in record.serving:
                    record.states[context.version] = VersionState(LOADING)
            versions: Mapping[int, Servable] = {}
            if prepared.dependent is None:
                versions = await self._loader.load(prepared)
                record.prepared, record.depends = None, ()
        if prepared.dependent is not None:
            versions, held = await self._bound(record, prepared.dependent, again), []
        self._swapper.swap(record, versions, held)
        record.succeeded()
        self._binder.follow(record.name)
        for version, loaded in versions.items():
            loaded.counters.load_seconds = monotonic() - started
            label, seconds = {"model": record.name, "version": str(version)}, loaded.counters.load_seconds
            _logger.info("model '%s' version %d is READY after %.3f s", record.name, version, seconds, extra=label)

    async def _bound(self, record: ModelRecord, prepared: PreparedDependent, again: bool) -> Mapping[int, Servable]:
        """Its versions over those that it depends on, once these are loaded; it may come into service only later."""
        depended, record.depends = record.depends, prepared.dependencies
        others = [name for name in prepared.dependencies if not self._binder.leads_back(record.name, name)]
        rings = await asyncio.gather(*(self._ensure(prepared.kind, record.name, name, again) for name in others))
        try:
            if any(rings):
                raise InvalidArgumentError("; ".join(filter(None, rings)))
            versions = self._binder.bound(prepared, record.serving)
        except NaiadError as error:
            if record.serving:
                record.depends = depended
            else:
                record.prepared = prepared
            raise refused(record.name, error) from error
        record.prepared = prepared
        return versions

    async def _ensure(self, kind: str, dependent: str, name: str, again: bool) -> str:
        """Wait for the model's load, or load it, unless it serves, or has failed and is not tried `again`.

        Returns the reason where its load waits for that of the dependent, which is of that kind.
        """
        task, record = self._loads.get(name), self.records.get(name)
        if task is not None and not task.done():
            if not self._load_waits.leads_to(name, dependent):
                with self._load_waits.waiting(dependent, name):
                    await asyncio.wait([task])
            elif record is None or not record.serving:
                return (
                    f"{kind} '{dependent}' needs model '{name}', which is being loaded and waits for '{dependent}' "
                    f"itself; let the model not ask for the {kind}, which comes into service as soon as the model does"
                )
            return ""
        if record is not None and (record.serving or (record.has_failed() and not again)):
            return ""
        with self._load_waits.waiting(dependent, name):
            folders = await self.repositories.find(name)
            if folders:
                await self._load_quietly(name, folders, explicit=False, again=again)
        return ""
