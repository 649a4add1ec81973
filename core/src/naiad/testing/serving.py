"""A server in the test's own process: models answer in milliseconds, and breakpoints in them work."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from naiad.datatypes import bf16_to_fp32, fp32_to_bf16
from naiad.errors import InvalidArgumentError, NaiadError
from naiad.types import Request, Response, Tensor

if TYPE_CHECKING:
    from naiad._kernel.server import Server

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
) -> "Iterator[Client]":
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


class ModelClient:
    """Sends requests to one model, with arrays in and arrays out."""

    def __init__(self, client: "Client", name: str, version: int = 0) -> None:
        self._client = client
        self._name = name
        self._version = version

    def infer(self, /, **inputs: Any) -> dict[str, np.ndarray]:
        """The outputs for these inputs; raises the request's error.

        An input is anything numpy takes, and gets the datatype that the model declares. BF16 is float32 here.
        """
        return _arrays(self._client.send(self.request(**inputs)))

    def infer_all(self, /, *inputs: Mapping[str, Any]) -> list[dict[str, np.ndarray]]:
        """The outputs for several requests that are sent at once, so that they may share a batch; raises an error."""
        outcomes = self._client.send_all([self.request(**each) for each in inputs])
        for outcome in outcomes:
            if isinstance(outcome, NaiadError):
                raise outcome
        return [_arrays(outcome) for outcome in outcomes if isinstance(outcome, Response)]

    def request(self, /, **inputs: Any) -> Request:
        """The request that `infer` sends; set `parameters`, `id` and the like before `Client.send`."""
        declared = self._client.call(lambda server: server.model_metadata(self._name, self._version))
        datatypes = {each.name: each.datatype for each in declared.inputs}
        tensors = {name: _tensor(name, value, datatypes.get(name, "")) for name, value in inputs.items()}
        return Request(self._name, tensors, version=self._version)


class Client:
    """Talks to the server of `serve`, from any thread but its own."""

    def __init__(self, server: "Server", loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self._loop = loop

    def __getitem__(self, name: str) -> ModelClient:
        return ModelClient(self, name)

    def infer(self, /, **inputs: Any) -> dict[str, np.ndarray]:
        """`ModelClient.infer` of the only model. Raises InvalidArgumentError when there are several."""
        return self._only().infer(**inputs)

    def infer_all(self, /, *inputs: Mapping[str, Any]) -> list[dict[str, np.ndarray]]:
        """`ModelClient.infer_all` of the only model."""
        return self._only().infer_all(*inputs)

    def request(self, /, **inputs: Any) -> Request:
        """`ModelClient.request` of the only model."""
        return self._only().request(**inputs)

    def send(self, request: Request) -> Response:
        """The response to a request; raises its error."""
        return self.wait_for(lambda server: server.infer(request))

    def send_all(self, requests: Sequence[Request]) -> list[Response | NaiadError]:
        """The responses or errors of requests that are sent at once, in their order."""

        async def gathered(server: "Server") -> list[Response | NaiadError]:
            return await asyncio.gather(*(_outcome(server, request) for request in requests))

        return self.wait_for(gathered)

    def call(self, action: "Callable[[Server], _T]") -> _T:
        """Something that the server answers at once (`lambda server: server.statistics()`), asked on its own thread."""

        async def asked(server: "Server") -> _T:
            return action(server)

        return self.wait_for(asked)

    def wait_for(self, action: "Callable[[Server], Coroutine[Any, Any, _T]]") -> _T:
        """Something that the server is awaited for (`lambda server: server.load("name")`)."""
        return asyncio.run_coroutine_threadsafe(action(self.server), self._loop).result()

    def _only(self) -> ModelClient:
        names = sorted({entry.name for entry in self.call(lambda server: server.index(ready=True))})
        if len(names) != 1:
            raise InvalidArgumentError(
                f"the models are {', '.join(names) or 'none'}; say which: client['name'].infer(...)"
            )
        return self[names[0]]


@contextmanager
def _running(repositories: Sequence[Path], plugins: Sequence[object], options: Mapping[str, Any]) -> Iterator[Client]:
    from naiad._kernel.server import Server

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


def _installed() -> list[object]:
    """The installed plugins that are no frontends; one that cannot be imported is left to `naiad plugins`."""
    found = []
    for entry_point in sorted(metadata.entry_points(group="naiad"), key=lambda each: each.name):
        try:
            plugin = entry_point.load()
        except Exception:  # noqa: BLE001, S112 - a broken plugin fails only those who need it
            continue
        if not hasattr(plugin, "naiad_frontends"):
            found.append(plugin)
    return found


async def _outcome(server: "Server", request: Request) -> Response | NaiadError:
    try:
        return await server.infer(request)
    except NaiadError as error:
        return error


def _tensor(name: str, value: Any, datatype: str) -> Tensor:
    if datatype == "BF16":
        return Tensor.of(name, fp32_to_bf16(np.asarray(value, dtype=np.float32)), "BF16")
    return Tensor.of(name, value, datatype)


def _arrays(response: Response) -> dict[str, np.ndarray]:
    return {
        name: bf16_to_fp32(tensor.array) if tensor.datatype == "BF16" else tensor.array
        for name, tensor in response.outputs.items()
    }
