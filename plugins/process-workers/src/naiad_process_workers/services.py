"""The server's side of the control link: what the model logs, counts, and asks other models."""

import logging
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from naiad.backend import ModelContext
from naiad.errors import InternalError, InvalidArgumentError, NaiadError
from naiad.foreign_errors import describe_error
from naiad.types import Request, Response, Trace
from naiad_config.user_code import RemoteTraceback
from naiad_kit.calls import ModelCalls, models_of
from naiad_kit.model_metrics import registry_of
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.connection import Connection
from naiad_process_workers.frames import Frame, LinkBrokenError, LinkClosedError, broken
from naiad_process_workers.messages import Kind, put_response, request_in
from naiad_process_workers.remote_errors import put_error
from naiad_process_workers.remote_trace import RemoteTrace
from naiad_tensors.tensors import Tensor

_logger = logging.getLogger("naiad.model")

MOST_BYTES_ON_LOOP = 4 << 20
"""Tensors of more bytes than this take over a millisecond to copy, and are copied on a thread."""

RequestsOf = Callable[[int], Sequence[Request]]
"""The requests of an execution, by its number."""


class ControlLink:
    """Reads the control link of one process, on a thread of its own, until the process ends."""

    def __init__(
        self,
        connection: Connection,
        context: ModelContext,
        requests_of: RequestsOf,
        on_broken: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """`on_broken` is called with the reason when nothing more can be read."""
        self._on_broken = on_broken
        self._connection = connection
        self._context = context
        self._requests_of = requests_of
        self._objects: dict[int, Any] = {}
        self._calls: dict[int, Future[Any]] = {}
        self._checks: dict[int, Future[str]] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._over = False
        self._flushing = threading.Lock()
        connection.write_later(self._blocked)
        self._thread = threading.Thread(target=self._run, name=f"naiad-control-{context.config.name}", daemon=True)
        self._thread.start()

    def serve(self, context: ModelContext) -> None:
        """Carry the metrics and model calls of this version from now on."""
        self._context = context

    def cancelled(self, number: int, index: int) -> None:
        """A request of an execution is cancelled. For any thread."""
        self._send(Kind.CANCELLED, number, index)

    def room(self, number: int, index: int) -> None:
        """A sender may send one more response. For any thread."""
        self._send(Kind.ROOM, number, index)

    def attach(self, index: int, work: socket.socket) -> None:
        """Hand a further work link to the process, for an instance of that index. Raises LinkClosedError."""
        self._connection.put(Kind.ATTACH, index, b"", (work.fileno(),))
        self._connection.wait_and_flush()

    def why_not_ready(self, index: int = 0) -> str:
        """Why the instance is not ready, "" when it is; waits for it."""
        answer: Future[str] = Future()
        with self._lock:
            self._count += 1
            number = self._count
            self._checks[number] = answer
            if self._over:
                return "its process has ended"
        self._send(Kind.READY, number, index)
        return answer.result()

    def close(self) -> None:
        """Wait for the thread, whose process has ended, and close the connection."""
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)
        self._connection.close()

    def _run(self) -> None:
        try:
            while True:
                for frame in self._connection.receive():
                    self._take(frame)
        except LinkClosedError:
            pass
        except Exception as error:  # noqa: BLE001 - what a process sends may be anything
            self._on_broken(f"it sent what cannot be read: {broken(error)}")
        finally:
            self._end()

    def _take(self, frame: Frame) -> None:
        decoder = Decoder(frame.body, self._connection.memory.read)
        if frame.kind == Kind.LOG:
            _log(*decoder.value())
        elif frame.kind == Kind.READINESS:
            check = self._checks.pop(frame.number, None)
            if check is not None:
                check.set_result(str(decoder.value()))
        elif frame.kind == Kind.CALL:
            self._call(frame.number, decoder)
        else:
            raise LinkBrokenError(f"a frame of kind {frame.kind}")

    def _call(self, number: int, decoder: Decoder) -> None:
        name, arguments = decoder.value()
        try:
            if name in ("infer", "stream"):
                request = request_in(decoder, str(decoder.value()))
                request.trace = self._trace_of(request.trace)
                self._ask_model(number, name, self._calls_for(*arguments), request)
            elif name in ("ready", "load", "unload"):
                work = lambda: getattr(models_of(self._context), name)(*arguments)  # noqa: E731 - it is short
                self._on_thread(self._reply_with, number, work)
            elif name == "next":
                self._reply_later(number, self._objects[arguments[0]].begin_next())
            else:
                self._reply_with(number, lambda: self._plain_call(name, arguments))
        except NaiadError as error:
            self._reply(number, error)
        except LinkBrokenError:
            raise
        except Exception as error:  # noqa: BLE001 - the arguments are the model's
            self._reply(number, InvalidArgumentError(f"'{name}' cannot be called so: {describe_error(error)}"))

    def _plain_call(self, name: str, arguments: Sequence[Any]) -> Any:
        """A call that returns at once."""
        if name == "family":
            return self._keep(registry_of(self._context).family(*arguments))
        first, *others = arguments
        if name == "metric":
            return self._keep(self._objects[first].metric(*others))
        if name == "cancel":
            call = self._calls.pop(first, None)
            return call is not None and call.cancel()
        if name == "stop":
            return self._objects[first].cancel()
        if name == "close":
            closed = self._objects.pop(first, None)
            return None if closed is None else closed.close()
        if name in ("increment", "set", "observe", "value"):
            return getattr(self._objects[first], name)(*others)
        raise InvalidArgumentError(f"there is no service '{name}'")

    def _calls_for(self, number: int, indices: Sequence[int]) -> ModelCalls:
        requests = self._requests_of(number)
        own = [requests[index] for index in indices if index < len(requests)]
        models = models_of(self._context)
        return models.within(own) if own else models

    def _trace_of(self, trace: Trace | None) -> Trace | None:
        """The trace that the model has named, while its execution is open."""
        if not isinstance(trace, RemoteTrace):
            return None
        requests = self._requests_of(trace.number)
        return requests[trace.index].trace if 0 <= trace.index < len(requests) else None

    def _ask_model(self, number: int, name: str, models: ModelCalls, request: Request) -> None:
        if name == "stream":
            self._reply(number, self._keep(models.stream(request)))
            return
        future = self._calls[number] = models.begin(request)
        future.add_done_callback(lambda done: self._calls.pop(number, None))
        self._reply_later(number, future)

    def _keep(self, kept: Any) -> int:
        with self._lock:
            self._count += 1
            self._objects[self._count] = kept
            return self._count

    def _on_thread(self, work: Callable[..., None], *arguments: Any) -> None:
        threading.Thread(target=work, args=arguments, name="naiad-model-control", daemon=True).start()

    def _reply_with(self, number: int, work: Callable[[], Any]) -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            result = error
        self._reply(number, result)

    def _reply_later(self, number: int, future: "Future[Any]") -> None:
        def reply(done: "Future[Any]") -> None:
            if done.cancelled():
                return
            error = done.exception()
            result = done.result() if error is None else error
            if isinstance(result, Response) and cost_of(result.outputs.values()) > MOST_BYTES_ON_LOOP:
                self._on_thread(self._reply, number, result)
            else:
                self._reply(number, result)

        future.add_done_callback(reply)

    def _reply(self, number: int, result: Any) -> None:
        try:
            try:
                body = self._encoded(result)
            except LinkClosedError:
                raise
            except Exception as error:  # noqa: BLE001 - a caller that gets no reply waits for ever
                reason = f"the reply to a call of model '{self._context.config.name}' cannot be sent to its process"
                body = self._encoded(InternalError(f"{reason}: {describe_error(error)}"))
            self._connection.send(Kind.REPLY, number, body)
        except LinkClosedError:
            _logger.debug("a process ended before it got a reply")

    def _encoded(self, result: Any) -> bytes:
        encoder = Encoder(self._connection)
        if isinstance(result, BaseException):
            encoder.value("error")
            put_error(encoder, result)
        elif isinstance(result, Response):
            encoder.value("response")
            put_response(encoder, result)
        else:
            encoder.value("value")
            encoder.value(result)
        return encoder.body()

    def _send(self, kind: int, number: int, value: object) -> None:
        encoder = Encoder(self._connection)
        encoder.value(value)
        with suppress(LinkClosedError):  # the thread that reads notices
            self._connection.send(kind, number, encoder.body())

    def _blocked(self) -> None:
        """The process does not read: a thread waits for it in place of the event loop."""
        if self._flushing.acquire(blocking=False):
            threading.Thread(target=self._flush, name="naiad-control-flush", daemon=True).start()

    def _flush(self) -> None:
        try:
            with suppress(LinkClosedError):
                self._connection.wait_and_flush()
        finally:
            self._flushing.release()

    def _end(self) -> None:
        with self._lock:
            self._over = True
            checks = list(self._checks.values())
            self._checks.clear()
        for check in checks:
            check.set_result("its process has ended")
        for call in list(self._calls.values()):
            call.cancel()
        for each in self._objects.values():
            with suppress(Exception):
                each.close()
        self._objects.clear()


def cost_of(tensors: Iterable[Tensor]) -> int:
    """The bytes of the tensors, and 512 more for each string, which takes as long to copy."""
    size = 0
    for tensor in tensors:
        size += getattr(tensor.payload, "nbytes", 0)
        if tensor.datatype == "BYTES":
            size += 512 * getattr(tensor.payload, "size", 0)
    return size


def _log(name: str, level: int, message: str, where: Sequence[Any], trace: str, extra: dict[str, str]) -> None:
    logger = logging.getLogger(name)
    if not logger.isEnabledFor(level):
        return
    path, line, function = where
    error = RemoteTraceback(trace)
    exc_info = (RemoteTraceback, error, None) if trace else None
    record = logger.makeRecord(name, level, path, line, "%s", (message,), exc_info, function)
    vars(record).update(extra)
    logger.handle(record)
