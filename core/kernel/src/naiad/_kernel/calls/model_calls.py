"""What a backend gets as `ModelContext.models`: the calls of one model version."""

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from naiad._kernel.calls.callers import Caller, caller_of
from naiad._kernel.calls.control import Load, ModelControl, ServedModels, Unload
from naiad._kernel.calls.crossing import Crossing, FindCaller
from naiad.backend import ModelContext
from naiad.calls import Responses
from naiad.extend import LoopRunner
from naiad.types import Request, Response

if TYPE_CHECKING:
    from naiad._kernel.call import Deliver
    from naiad._kernel.version import ModelVersion
    from naiad.server import SubmittedRequest


class Calls:
    """The calls of all models of a server. Made, and closed, on the event loop's thread.

    `models` gives the models of the server, which are made after this.
    """

    def __init__(
        self, models: Callable[[], ServedModels], load: Load, unload: Unload, runner: LoopRunner | None = None
    ) -> None:
        self.crossing = Crossing(self._submit, runner)
        self.control = ModelControl(models, load, unload)
        self._models = models

    def of_model(self, name: str) -> "VersionCalls":
        """For a version of that model, which is about to be loaded."""
        return VersionCalls(self, Owner(name))

    def close(self) -> None:
        """Fail what is under way; to be called when the models are closed."""
        self.crossing.close()

    def _submit(self, request: Request, deliver: "Deliver", streams: bool) -> "SubmittedRequest":
        """Also while the server stops: what was taken in is still answered, with all the calls that takes."""
        return self._models().version_for(request).submit(request, deliver, streams)


class Owner:
    """The version that calls; `version` is None until it serves."""

    __slots__ = ("name", "version")

    def __init__(self, name: str) -> None:
        self.name = name
        self.version: ModelVersion | None = None

    @property
    def loading(self) -> str:
        """Its name while it is being loaded, "" afterwards."""
        return "" if self.version is not None else self.name


class VersionCalls:
    """The calls of one version, perhaps those made for some of its requests: see `naiad.calls.ModelCalls`."""

    def __init__(self, calls: Calls, owner: Owner, requests: Sequence[Request] = ()) -> None:
        self._calls = calls
        self._crossing = calls.crossing
        self._owner = owner
        self._requests = requests
        self._home = threading.get_ident()

    def within(self, requests: Sequence[Request]) -> "VersionCalls":
        """The same for calls made while these requests execute."""
        return VersionCalls(self._calls, self._owner, tuple(requests))

    def infer(self, request: Request) -> Response:
        """The response to a request."""
        self._crossing.check_may_wait()
        return self.begin(request).result()

    def begin(self, request: Request) -> "Future[Response]":
        """The same without waiting."""
        return self._crossing.begin(request, self._find_caller())

    def stream(self, request: Request) -> Responses:
        """The responses to a request."""
        return self._crossing.stream(request, self._find_caller())

    def ready(self, name: str, version: int = 0) -> bool:
        """Whether a version can serve."""

        async def ask() -> bool:
            return self._calls.control.ready(name, version)

        return self._crossing.wait_for(ask)

    def load(self, name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload a model."""
        self._crossing.wait_for(lambda: self._calls.control.load(self._owner.loading, name, config, files))

    def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Take a model out of service."""
        self._crossing.wait_for(lambda: self._calls.control.unload(self._owner.loading, name, unload_dependents))

    def serves(self, version: "ModelVersion") -> None:
        """This is the version that calls, and it is loaded."""
        self._owner.version = version

    def _find_caller(self) -> FindCaller:
        return functools.partial(self._caller, threading.get_ident() != self._home)

    def _caller(self, is_elsewhere: bool) -> Caller | None:
        version = self._owner.version
        if version is None or not self._requests:
            return None
        caller = caller_of(version, self._requests)
        if caller is not None:
            caller.is_elsewhere = is_elsewhere
        return caller


def tell_loaded(context: ModelContext, version: "ModelVersion") -> None:
    """A version is loaded: whoever calls in its name can be followed from now on."""
    if isinstance(context.models, VersionCalls):
        context.models.serves(version)
