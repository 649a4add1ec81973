"""Loading all versions of a model together: a generation serves as a whole or not at all."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from naiad._kernel.loading import SECONDS_TO_CLOSE, Loader, PreparedModel
from naiad._kernel.prepared import PreparedDependent
from naiad._kernel.repository import ModelSource
from naiad._kernel.version import ModelVersion
from naiad.backend import ModelContext
from naiad.errors import ConfigError, InternalError, InvalidArgumentError, NaiadError
from naiad.foreign_errors import describe_error

_logger = logging.getLogger("naiad.model")
_T = TypeVar("_T")


async def prepare(loader: Loader, source: ModelSource, retries: int) -> PreparedModel | PreparedDependent:
    """A model ready to be loaded; what fails is tried `retries` times more, unless the configuration is wrong.

    Completing a configuration opens the model's files and runs its code, which may fail for a while only.
    """
    return await _tried(retries, source.name, "preparing it", lambda: loader.prepare_on_thread(source))


async def load_generation(loader: Loader, prepared: PreparedModel, retries: int) -> dict[int, ModelVersion]:
    """Every version of a prepared model, ready to serve; a version that fails is tried `retries` times more.

    Raises InvalidArgumentError with the version and the reason when one fails; nothing of the others is left then.
    """
    loaded: dict[int, ModelVersion] = {}

    async def load(context: ModelContext) -> None:
        loaded[context.version] = await _load_version(loader, prepared, context, retries)

    try:
        results = await asyncio.gather(*map(load, prepared.contexts), return_exceptions=True)
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


async def guarded(name: str, work: Awaitable[_T]) -> _T:
    """What loading raises, as a NaiadError: a broken model must take nothing else down."""
    try:
        return await work
    except NaiadError:
        raise
    except Exception as error:
        _logger.exception("loading model '%s' failed", name, extra={"model": name})
        raise InternalError(describe_error(error)) from error


async def _load_version(loader: Loader, prepared: PreparedModel, context: ModelContext, retries: int) -> ModelVersion:
    name, version = context.config.name, context.version
    try:
        return await _tried(retries, name, f"loading version {version}", lambda: loader.load(prepared, context))
    except NaiadError as error:
        raise InvalidArgumentError(
            f"load failed for model '{name}': version {version} is at UNAVAILABLE state: {error};"
        ) from error


async def _tried(retries: int, name: str, step: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
    """The step's result; when it fails it is tried `retries` times more, unless the configuration is wrong."""
    for _ in range(retries):
        try:
            return await guarded(name, attempt())
        except ConfigError:
            raise
        except NaiadError as error:
            _logger.warning("model '%s': %s failed, trying again: %s", name, step, error)
    return await guarded(name, attempt())
