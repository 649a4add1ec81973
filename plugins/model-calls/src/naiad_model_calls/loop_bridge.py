"""Bridge from the threads of models to the event loop; a server has one from its start to its stop."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from naiad.errors import ShuttingDownError, UnsupportedError
from naiad.server import ServerApi
from naiad.threads import on_event_loop
from naiad.types import Request, Response
from naiad_model_calls.deadlocks import DeadlockDetector
from naiad_model_calls.model_call import FindScope, ModelCall, OneResponse, Sink
from naiad_model_calls.response_flow import CalledResponses, ResponseFlow

_T = TypeVar("_T")


class LoopBridge:
    """Carries calls over. `close` is for the event loop's thread that made it, everything else for any."""

    def __init__(self, server: ServerApi) -> None:
        self.server = server
        self._detector = DeadlockDetector(server.occupancy)
        self._loop = asyncio.get_running_loop()
        self._open: dict[ModelCall, None] = {}
        self._controls: dict[Future[Any], None] = {}
        self._closed = False

    def check_may_wait(self) -> None:
        """Raise UnsupportedError on the event loop, which must not wait for itself; elsewhere see that it is free."""
        if on_event_loop(self._loop):
            raise UnsupportedError(
                "a model that executes on the event loop cannot wait for another model, because nothing could answer "
                "meanwhile; drop its parameter 'execute_on', or begin the call and answer later"
            )
        self.server.release_loop()

    def begin(self, request: Request, find_scope: FindScope) -> "Future[Response]":
        """The response to a request; cancelling the future takes it back."""
        one, call = OneResponse(), self._new_call(request, streams=False)
        self._send(call, one, request, find_scope)
        one.future.add_done_callback(functools.partial(self._cancelled, call))
        return one.future

    def stream(self, request: Request, find_scope: FindScope) -> CalledResponses:
        """The responses to a request."""
        call = self._new_call(request, streams=True)
        flow = ResponseFlow(call.pause, lambda: self._post(call.resume))
        self._send(call, flow, request, find_scope)
        cancel, take_back = functools.partial(self._cancel, call), functools.partial(self._take_back, call)
        return CalledResponses(flow, cancel, take_back, functools.partial(self._drop, call, flow), self.check_may_wait)

    def wait_for(self, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run a coroutine on the event loop and wait for what it returns. Raises ShuttingDownError when it stops."""
        self.check_may_wait()
        self._check_open()
        future = asyncio.run_coroutine_threadsafe(make(), self._loop)
        self._controls[future] = None
        if self._closed:  # meanwhile, without having seen it
            future.cancel()
        try:
            return future.result()
        except CancelledError:
            raise _stopped() from None
        finally:
            self._controls.pop(future, None)
            del future  # which holds its error, whose traceback holds this frame, and what its caller sends

    def close(self) -> None:
        """Fail what is still under way, and refuse the rest."""
        self._closed = True
        self._detector.close()
        for call in list(self._open):
            call.abort(_stopped())
        for future in list(self._controls):
            future.cancel()

    def _send(self, call: ModelCall, sink: Sink, request: Request, find_scope: FindScope) -> None:
        self._check_open()
        call.deliver_to(sink)
        self._open[call] = None
        self._post(lambda: self._begin(call, request, find_scope))
        if self._closed:  # since the check above: the event loop may never get to it
            call.abort(_stopped())

    def _begin(self, call: ModelCall, request: Request, find_scope: FindScope) -> None:
        if self._closed:
            call.abort(_stopped())
        else:
            call.begin(request, find_scope, self.server.submit)

    def _new_call(self, request: Request, streams: bool) -> ModelCall:
        return ModelCall(request.model_name, streams, self._detector.began, self._ended)

    def _ended(self, call: ModelCall) -> None:
        self._open.pop(call, None)
        self._detector.ended(call)

    def _cancelled(self, call: ModelCall, future: "Future[Response]") -> None:
        if future.cancelled():
            self._take_back(call)

    def _cancel(self, call: ModelCall) -> None:
        if not call.over and not self._loop.is_closed():
            self._post(lambda: call.request_cancellation(self.server.occupancy()))

    def _take_back(self, call: ModelCall) -> None:
        if not call.over and not self._loop.is_closed():
            self._post(call.cancel)

    def _drop(self, call: ModelCall, flow: ResponseFlow) -> None:
        """The responses cannot be taken any more. Neither locks nor logs: the garbage collector calls it."""
        if not call.over and not self._loop.is_closed():
            self._post(functools.partial(_end_dropped, call, flow))

    def _post(self, act: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:  # the loop is closed
            self._closed = True

    def _check_open(self) -> None:
        if self._closed or self._loop.is_closed():
            raise _stopped()


def _end_dropped(call: ModelCall, flow: ResponseFlow) -> None:
    flow.end()
    call.cancel()


def _stopped() -> ShuttingDownError:
    return ShuttingDownError("the server has stopped, and its models call each other no more")
