"""Call scopes: the requests on whose behalf a model calls other models, and what a call inherits from them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from naiad.errors import NaiadError, RequestCancelledError
from naiad.extend import LoadedVersion, Suspension
from naiad.in_flight import WatchedRequest
from naiad.types import Request
from naiad_tensors.tensors import Tensor


class OpenCall(Protocol):
    """A call that has begun and is not over; `streams` where it takes several responses."""

    streams: bool

    def abort(self, error: NaiadError) -> None:
        """End it with that error."""
        ...

    def lift(self) -> None:
        """Let the responses that are read slowly gather from now on."""
        ...


class CallingModel:
    """One version whose model calls others. `version` is None until it serves. For the event loop's thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.version: LoadedVersion | None = None
        self._scopes: dict[tuple[WatchedRequest, ...], CallScope] = {}

    @property
    def loading(self) -> str:
        """Its name while it is being loaded, "" afterwards."""
        return "" if self.version is not None else self.name

    def scope_of(self, requests: Sequence[Request]) -> "CallScope | None":
        """The scope of these requests, one for as long as it has open calls; None when the requests are over."""
        in_flight = tuple(self.version.in_flight(requests)) if self.version is not None and requests else ()
        if self.version is None or not in_flight:
            return None
        scope = self._scopes.get(in_flight)
        if scope is None:
            scope = self._scopes[in_flight] = CallScope(self, self.version, in_flight)
        return scope

    def forget(self, scope: "CallScope") -> None:
        """The scope has no open calls."""
        self._scopes.pop(scope.requests, None)


class CallScope:
    """Some of the requests that an instance executes, and the `calls` that are open on their behalf."""

    def __init__(self, model: CallingModel, version: LoadedVersion, requests: tuple[WatchedRequest, ...]) -> None:
        self.model = model.name
        self.requests = requests
        self.calls: dict[OpenCall, None] = {}
        self._model = model
        self._version = version
        for request in requests:
            request.watch(self._look_whether_cancelled)

    def began(self, call: OpenCall) -> None:
        """One more call is open. Raises RequestCancelledError where no caller waits for any of the requests."""
        self.calls[call] = None
        if self._is_cancelled:
            raise _cancelled()

    def ended(self, call: OpenCall) -> None:
        """A call is over; with the last of them the scope ends."""
        self.calls.pop(call, None)
        if not self.calls:
            self._model.forget(self)
            for request in self.requests:
                request.unwatch(self._look_whether_cancelled)

    @property
    def reads_streams(self) -> bool:
        """Whether any open call takes several responses."""
        return any(call.streams for call in self.calls)

    def lift_if_gated(self) -> None:
        """Hold no stream back while another call is open, where an execution gate decides who executes.

        What either call needs may be held by the other one's model, where the gate alone can see it.
        """
        if self._version.is_gated and len(self.calls) > 1 and not self._is_cancelled:
            for call in list(self.calls):
                call.lift()

    def suspend(self) -> Suspension | None:
        """The execution waits for one more response, and gives up its grant; None where it holds none."""
        return self._version.suspend(self.requests[0])

    def derive(self, request: Request, caller: object) -> Request:
        """The request with the deadline, priority and trace of those that it is made for, unless it has its own."""
        outer = [each.request for each in self.requests]
        deadlines = [each.deadline for each in outer if each.deadline is not None]
        bounds = [] if request.deadline is None else [request.deadline]
        if deadlines and len(deadlines) == len(outer):
            bounds.append(max(deadlines))
        priority = request.priority or min((each.priority for each in outer if each.priority), default=0)
        trace = request.trace or next((each.trace for each in outer if each.trace is not None), None)
        inherited = replace(request, deadline=min(bounds, default=None), priority=priority, trace=trace)
        return derive(inherited, caller)

    @property
    def _is_cancelled(self) -> bool:
        return all(each.request.cancelled for each in self.requests)

    def _look_whether_cancelled(self) -> None:
        if self._is_cancelled:
            for call in list(self.calls):
                call.abort(_cancelled())


def derive(request: Request, caller: object) -> Request:
    """A copy of a model's request, whose tensors the called model cannot write to: it gets the arrays themselves."""
    derived = replace(
        request,
        inputs={name: _read_only(tensor) for name, tensor in request.inputs.items()},
        caller=caller,
        cancelled=False,
        on_cancelled=None,
        transfer=None,
        received_ns=0,
    )
    if derived.trace is not None:
        derived.trace = derived.trace.child(derived.model_name, derived.version, derived.id)
    return derived


def _read_only(tensor: Tensor) -> Tensor:
    array = tensor.payload
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return tensor
    view = array.view()
    view.flags.writeable = False
    return Tensor(tensor.name, tensor.datatype, tensor.shape, view)


def _cancelled() -> NaiadError:
    return RequestCancelledError("the callers of the requests that this call was made for have left")
