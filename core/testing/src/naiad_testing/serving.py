"""In-process server for tests: models answer in milliseconds, and breakpoints in them work."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

from naiad.errors import InvalidArgumentError
from naiad_testing.clients import Client, ModelClient

__all__ = ["Client", "ModelClient", "ServableMark", "serve"]

_T = TypeVar("_T")
_MARK = "__naiad_model__"


class ServableMark(Protocol):
    """The attribute `__naiad_model__` of a function or class that some plugin can serve as it stands."""

    def serve_from(self, target: Any, repository: Path) -> Sequence[object]:
        """Enter the object into the model repository, and give the plugins that serve it from there."""
        ...


@contextmanager
def serve(
    *targets: str | Path | Callable[..., Any],
    plugins: Sequence[object] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Iterator[Client]:
    """Serve models in this process, without a frontend, for as long as the block runs.

    A target is a model's folder, a model repository, or a function or class marked by a plugin (`@naiad_custom.model`).
    `plugins` None takes the installed ones, `options` are those of `naiad serve`. Raises NaiadError when a model does
    not load, with the reason.
    """
    with ExitStack() as stack:
        repositories, names, own = _entered(targets, stack)
        chosen = [*(_installed() if plugins is None else plugins), *own]
        settings = {"model-control-mode": "explicit", "load-model": tuple(names), **(options or {})}
        yield stack.enter_context(_running(repositories, chosen, settings))


@contextmanager
def _running(repositories: Sequence[Path], plugins: Sequence[object], options: Mapping[str, Any]) -> Iterator[Client]:
    from naiad import Server

    server = Server(model_repository=repositories, plugins=plugins, options=options)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="naiad-testing", daemon=True)
    thread.start()

    def wait_for(awaited: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(awaited, loop).result()

    try:
        wait_for(server.start())
        try:
            yield Client(server, loop)
        finally:
            wait_for(server.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _entered(
    targets: Sequence[str | Path | Callable[..., Any]], stack: ExitStack
) -> tuple[list[Path], list[str], list[object]]:
    """The repositories, the names of the models to load from them, and the plugins of marked objects."""
    repositories: dict[Path, None] = {}
    names: list[str] = []
    plugins: list[object] = []
    written: Path | None = None
    for target in targets:
        if isinstance(target, str | Path):
            path = Path(target).resolve()
            is_model = _is_model(path)
            repositories[path.parent if is_model else path] = None
            folders = [path] if is_model else [each for each in sorted(path.iterdir()) if each.is_dir()]
            names += [each.name for each in folders if _is_model(each)]
            continue
        written = written or Path(stack.enter_context(TemporaryDirectory(prefix="naiad-testing-")))
        repositories[written] = None
        names.append(target.__name__)
        plugins += _mark_of(target).serve_from(target, written)
    return list(repositories), names, plugins


def _mark_of(target: Callable[..., Any]) -> ServableMark:
    mark: ServableMark | None = getattr(target, _MARK, None)
    if mark is None:
        raise InvalidArgumentError(f"{target!r} is not marked as a model; put @naiad_custom.model above it")
    return mark


def _is_model(path: Path) -> bool:
    """Whether the folder is a model's: it has a configuration or a folder named by a version number."""
    if not path.is_dir():
        raise InvalidArgumentError(f"there is no folder '{path}'")
    return (path / "config.pbtxt").is_file() or any(each.name.isdigit() and each.is_dir() for each in path.iterdir())


@cache
def _installed() -> Sequence[object]:
    """The installed plugins without their frontends; one that cannot be imported is left to `naiad plugins`."""
    members = []
    for entry_point in sorted(metadata.entry_points(group="naiad"), key=lambda each: each.name):
        try:
            plugin = entry_point.load()
        except Exception:  # noqa: BLE001, S112 - a broken plugin fails only those who need it
            continue
        if not hasattr(plugin, "naiad_frontends"):
            members.append(plugin)
        elif hasattr(plugin, "naiad_services"):
            members.append(without_frontends(plugin))
    return members


def without_frontends(plugin: object) -> object:
    """That plugin without its frontends: its services, say, in a server that listens nowhere."""
    hooks = {name: getattr(plugin, name) for name in dir(plugin) if name.startswith("naiad_")}
    hooks.pop("naiad_frontends", None)
    return SimpleNamespace(__name__=getattr(plugin, "__name__", type(plugin).__name__), **hooks)
