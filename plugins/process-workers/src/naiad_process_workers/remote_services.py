"""The server's services in the process of an instance: log, model calls and metrics, over the control link."""

import itertools
import logging
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from naiad.types import Request, Response
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.connection import Connection
from naiad_process_workers.messages import Kind, put_request, response_in
from naiad_process_workers.remote_errors import error_in

FindRequests = Callable[[Sequence[Request]], tuple[int, list[int]]]
"""The number of the execution of these requests and their indices in it; (0, []) when it is over."""


class Caller:
    """Calls services of the server over the control link. For any thread but the one that reads the link."""

    def __init__(self, control: Connection, find_requests: FindRequests) -> None:
        self.find_requests = find_requests
        self._control = control
        self._numbers = itertools.count(1)
        self._open: dict[int, Future[Any]] = {}

    def call(self, name: str, *arguments: Any) -> Any:
        """What the service returns. Raises its error."""
        future = self.begin(name, *arguments)
        try:
            return future.result()
        finally:
            del future  # its error's traceback would hold this frame

    def begin(self, name: str, *arguments: Any, request: Request | None = None) -> "Future[Any]":
        """The same without waiting; cancelling the future takes a call of another model back."""
        number = next(self._numbers)
        encoder = Encoder(self._control)
        encoder.value([name, list(arguments)])
        if request is not None:
            encoder.value(request.model_name)
            put_request(encoder, request)
        future = self._open[number] = Future()
        if request is not None:
            future.add_done_callback(partial(self._done, number))
        self._control.send(Kind.CALL, number, encoder.body(), encoder.kept)
        return future

    def replied(self, number: int, decoder: Decoder) -> None:
        """The server has answered a call."""
        future = self._open.pop(number, None)
        form = decoder.value()
        error = error_in(decoder) if form == "error" else None
        result = response_in(decoder) if form == "response" else decoder.value() if form == "value" else None
        if future is None or not future.set_running_or_notify_cancel():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def _done(self, number: int, future: "Future[Any]") -> None:
        if future.cancelled():
            self._open.pop(number, None)
            self.begin("cancel", number)


class RemoteCalls:
    """The calls of the model to other models: see `naiad_kit.calls.ModelCalls`."""

    def __init__(self, caller: Caller, requests: tuple[int, list[int]] = (0, [])) -> None:
        self._caller = caller
        self._requests = requests

    def within(self, requests: Sequence[Request]) -> "RemoteCalls":
        """The same for calls made while these requests execute."""
        return RemoteCalls(self._caller, self._caller.find_requests(requests))

    def infer(self, request: Request) -> Response:
        """The response to a request."""
        future = self.begin(request)
        try:
            return future.result()
        finally:
            del future  # its error's traceback would hold this frame

    def begin(self, request: Request) -> "Future[Response]":
        """The same without waiting."""
        return self._caller.begin("infer", *self._requests, request=request)

    def stream(self, request: Request) -> "RemoteResponses":
        """The responses to a request."""
        number = self._caller.begin("stream", *self._requests, request=request).result()
        return RemoteResponses(self._caller, number)

    def ready(self, name: str, version: int = 0) -> bool:
        """Whether a version can serve."""
        return bool(self._caller.call("ready", name, version))

    def load(self, name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload a model."""
        self._caller.call("load", name, config, files)

    def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Take a model out of service."""
        self._caller.call("unload", name, unload_dependents)


class RemoteResponses:
    """The responses to a call, one by one: see `naiad_kit.calls.Responses`."""

    def __init__(self, caller: Caller, number: int) -> None:
        self._caller = caller
        self._number = number
        self._is_closed = False
        self._coming: list[Future[Response | None]] = []  # the response that is on its way, if there is one

    def __iter__(self) -> Iterator[Response]:
        return self

    def __next__(self) -> Response:
        response = None if self._is_closed else self.begin_next().result()
        if response is None:
            self.close()
            raise StopIteration
        return response

    def begin_next(self) -> "Future[Response | None]":
        """The next response when it is there, None after the last. One that comes after a cancellation is the next."""
        following: Future[Response | None] = Future()
        try:
            response = self._coming[0]
        except IndexError:
            response = self._caller.begin("next", self._number)
            self._coming.append(response)
        response.add_done_callback(partial(_hand_on, self._coming, following))
        return following

    def cancel(self) -> None:
        """Ask the model to stop."""
        self._caller.begin("stop", self._number)

    def close(self) -> None:
        """Take no more responses: the server forgets the call."""
        if not self._is_closed:
            self._is_closed = True
            self._coming.clear()
            self._caller.begin("close", self._number)

    def __del__(self) -> None:
        self.close()


def _hand_on(
    coming: "list[Future[Response | None]]", following: "Future[Response | None]", done: "Future[Response | None]"
) -> None:
    """Set `following` to the response that has come; where that is cancelled, it waits for the one after."""
    if not following.set_running_or_notify_cancel():
        return
    coming.clear()
    error = done.exception()
    if error is not None:
        following.set_exception(error)
    else:
        following.set_result(done.result())


class RemoteMetrics:
    """The metrics of the model: see `naiad_kit.metrics.MetricRegistry`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def family(self, name: str, description: str, kind: str, buckets: Sequence[float] = ()) -> "RemoteFamily":
        """The family of that name."""
        return RemoteFamily(self._caller, self._caller.call("family", name, description, kind, list(buckets)))

    def close(self) -> None:
        """The server closes it."""


class RemoteFamily:
    """A family of metrics: see `naiad_kit.metrics.Family`."""

    def __init__(self, caller: Caller, number: int) -> None:
        self._caller = caller
        self._number = number

    def metric(self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None) -> "RemoteMetric":
        """The metric with these labels."""
        bounds = None if buckets is None else list(buckets)
        return RemoteMetric(self._caller, self._caller.call("metric", self._number, labels, bounds))

    def close(self) -> None:
        """Close every metric that was made here; called by the garbage collector too, so it waits for nothing."""
        self._caller.begin("close", self._number)


class RemoteMetric:
    """A metric: see `naiad_kit.metrics.Metric`."""

    def __init__(self, caller: Caller, number: int) -> None:
        self._caller = caller
        self._number = number

    def increment(self, value: float = 1.0) -> None:
        """Add to a counter or gauge."""
        self._caller.call("increment", self._number, value)

    def set(self, value: float) -> None:
        """Set a gauge."""
        self._caller.call("set", self._number, value)

    def observe(self, value: float) -> None:
        """Count a value in a histogram."""
        self._caller.call("observe", self._number, value)

    def value(self) -> float:
        """The value of a counter or gauge."""
        return float(self._caller.call("value", self._number))

    def close(self) -> None:
        """Remove the series; waits for nothing."""
        self._caller.begin("close", self._number)


class RemoteLog(logging.Handler):
    """Sends log records to the server's log, with their tracebacks as text."""

    def __init__(self, control: Connection) -> None:
        super().__init__()
        self._control = control

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record."""
        try:
            trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
            extra = {
                name: str(getattr(record, name)) for name in ("model", "version", "request_id") if name in vars(record)
            }
            encoder = Encoder(self._control)
            where = [record.pathname, record.lineno, record.funcName or ""]
            encoder.value([record.name, record.levelno, record.getMessage(), where, trace.rstrip(), extra])
            self._control.send(Kind.LOG, 0, encoder.body())
        except Exception:  # noqa: BLE001 - as any handler does
            self.handleError(record)
