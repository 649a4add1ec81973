"""Loading of models: every version of a prepared model is loaded, with its instances warmed up, or none."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TypeVar

from naiad._engine.stages import OfferedStages
from naiad._engine.version import ModelVersion
from naiad._lifecycle.bounded_threads import BoundedThreads
from naiad._lifecycle.preparation import Preparer
from naiad._lifecycle.prepared import Held, Prepared, PreparedModel
from naiad._lifecycle.servables import loading
from naiad._plugins.known_plugins import needs_of
from naiad._plugins.registry import PluginRegistry
from naiad.backend import Model, ModelContext
from naiad.codec import BatchCodec
from naiad.errors import ConfigError, InvalidArgumentError, NaiadError
from naiad.extend import GateFactory, LoopRunner
from naiad.foreign_errors import logged
from naiad.options import Settings
from naiad.scheduler import SchedulerFactory
from naiad.threads import on_own_thread
from naiad.warmup import Warmup
from naiad_config import Paths
from naiad_config.errors import LoadFailedError
from naiad_config.labels import read_labels
from naiad_config.stores import Location
from naiad_statistics.versions import VersionCounters

SECONDS_TO_CLOSE = 30.0
"""How long a failed load waits for what it had loaded to close."""

_logger = logging.getLogger("naiad.model")
_T = TypeVar("_T")


class Loader:
    """Prepares and loads models on `threads`; what fails is tried again as often as the options say.

    `gates` and `runner` are None where nothing is limited and where the event loop stays on its thread. `starting` are
    the versions whose instances are made now. The switch interval is short during a load: imports take the interpreter
    from the event loop for 5 ms at a time, and each request needs it several times.
    """

    def __init__(
        self,
        preparer: Preparer,
        plugins: PluginRegistry,
        settings: Settings,
        gates: GateFactory | None,
        runner: LoopRunner | None,
    ) -> None:
        self.threads = BoundedThreads("naiad-load", settings["model-load-thread-count"])
        self.starting: dict[tuple[str, int], ModelVersion] = {}
        self._preparer = preparer
        self._plugins = plugins
        self._gates = gates
        self._retries: int = settings["model-load-retry-count"]
        self._short_switch_interval = nullcontext if runner is None else runner.short_switch_interval

    async def prepare(self, name: str, directory: Location, override: str, held: Held, sent: Paths) -> Prepared:
        """A model ready to be loaded. Its backend opens the model's files for that, which may fail for a while only."""
        prepare = partial(self.threads.run, self._preparer.prepare, directory, name, override, held, sent)
        with self._short_switch_interval():
            return await self._tried(name, "preparing it", prepare)

    async def load(self, prepared: PreparedModel) -> dict[int, ModelVersion]:
        """Every version, ready to serve. Raises LoadFailedError when one fails; the others are closed then."""
        loaded: dict[int, ModelVersion] = {}

        async def load_one(context: ModelContext) -> None:
            name, version = context.config.name, context.version
            try:
                load = partial(self._load, prepared, context)
                loaded[version] = await self._tried(name, f"loading version {version}", load)
            except NaiadError as error:
                raise LoadFailedError(name, version, error) from error

        try:
            results = await asyncio.gather(*map(load_one, prepared.contexts), return_exceptions=True)
        except asyncio.CancelledError:
            await asyncio.gather(*(version.close(0.0) for version in loaded.values()))
            raise
        failure = next((result for result in results if result is not None), None)
        if failure is None:
            return loaded
        try:
            await asyncio.gather(*(version.close(SECONDS_TO_CLOSE) for version in loaded.values()))
            raise failure
        finally:
            del failure, results  # whose traceback holds this frame, and with it what was prepared

    async def _load(self, prepared: PreparedModel, context: ModelContext) -> ModelVersion:
        """One attempt. What an earlier one has left behind may close late, and closes the metrics of its own."""
        context = self._preparer.loadable(context)
        try:
            with self._short_switch_interval():
                return await self._load_version(prepared, context)
        except BaseException:
            for part in context.parts.values():
                with logged(f"closing what a plugin keeps of model '{context.config.name}'"):
                    part.close()
            raise

    async def _load_version(self, prepared: PreparedModel, context: ModelContext) -> ModelVersion:
        counters, load = VersionCounters(self._preparer.observer(context.config)), self._load_blocking
        model, labels, warmups, codec, stages = await self.threads.run(load, prepared, context, counters)
        placements, worker = prepared.placements, prepared.worker
        try:
            version = ModelVersion(
                context, model, placements, labels, warmups, worker, counters, self._gates, codec, stages
            )
        except BaseException:
            closing = on_own_thread(f"naiad-close-{context.config.name}", _close_quietly, model)
            await asyncio.wait([asyncio.ensure_future(closing)], timeout=SECONDS_TO_CLOSE)
            raise
        self.starting[version.name, version.version] = version
        try:
            await version.start(prepared.backend.traits, prepared.factory)
            for part in context.parts.values():
                part.loaded(version)
        except BaseException as error:  # a cancelled load does not wait for a model that hangs
            await version.close(0.0 if isinstance(error, asyncio.CancelledError) else SECONDS_TO_CLOSE)
            raise
        finally:
            del self.starting[version.name, version.version]
        return version

    def _load_blocking(
        self, prepared: PreparedModel, context: ModelContext, counters: VersionCounters
    ) -> tuple[Model, dict[str, tuple[str, ...]], Sequence[Warmup], BatchCodec | None, OfferedStages]:
        with loading(context.config.name):
            labels, codec = read_labels(context.config, context.path_inside), _codec_of(prepared.factory, context)
            warmups, stages = self._plugins.warmup(context), self._preparer.stages(context, counters)
            return prepared.backend.load(context), labels, warmups, codec, stages

    async def _tried(self, name: str, step: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """The step's result; when it fails it is tried again, unless the configuration is wrong."""
        for _ in range(self._retries):
            try:
                with loading(name):
                    return await attempt()
            except ConfigError:
                raise
            except NaiadError as error:
                _logger.warning("model '%s': %s failed, trying again: %s", name, step, error)
        with loading(name):
            return await attempt()


def _codec_of(factory: SchedulerFactory, context: ModelContext) -> BatchCodec | None:
    """The batch codec that the scheduler brings for a version, None without one where no part of the model needs it."""
    make = getattr(factory, "codec", None)
    codec: BatchCodec | None = None if make is None else make(context)
    for need in needs_of(context.config, "codec"):
        if codec is None:
            raise InvalidArgumentError(
                f"model '{context.config.name}' has {need.noun}, and its scheduler '{factory.name}' has no batch codec "
                "for it; drop the parameter 'scheduler'"
            )
    return codec


def _close_quietly(model: Model) -> None:
    """Close a model that no version was made of; the error that kept it from one matters more."""
    with logged("closing a model that did not load"):
        model.close()
