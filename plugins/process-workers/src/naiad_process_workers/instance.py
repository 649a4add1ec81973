"""An instance in a process, as the server has it: what it sends and takes, for any kind of model."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from naiad.backend import Answer, Batch
from naiad.batch import Sender
from naiad.errors import NaiadError, WorkerDiedError
from naiad_kit.senders import NullSender
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.connection import Connection
from naiad_process_workers.frames import Frame, LinkBrokenError, LinkClosedError, broken
from naiad_process_workers.messages import Kind, answer_in, put_batch, reply_in
from naiad_process_workers.process import ModelProcess, held
from naiad_process_workers.remote_errors import error_in


class ProcessInstance:
    """An instance in a process. Blocks as any instance does, until `attach` makes `execute` return futures.

    Then `take` gets the frames that the process sends, on the event loop's thread. `work` is its link, and `index` its
    number in a process that it shares with others.
    """

    def __init__(
        self,
        name: str,
        process: ModelProcess,
        work: Connection,
        index: int,
        outputs: Sequence[str],
        concurrency: int,
        ready: bool,
        sequences: bool,
    ) -> None:
        self._alone = False
        self.concurrency = concurrency
        self.process = process
        self.work = work
        self._index = index
        self._name = name
        self._outputs = outputs
        self._has_ready = ready
        self._has_sequence_ended = sequences
        self._open: dict[int, tuple[Batch, Future[Answer]]] = {}
        self._senders: dict[tuple[int, int], Sender] = {}
        self._attached = False

    @property
    def ready(self) -> Callable[[], str]:
        """Says why it is not ready; there only where the instance in the process has it."""
        if not self._has_ready:
            raise AttributeError("ready")
        return partial(self.process.control.why_not_ready, self._index)

    @property
    def sequence_ended(self) -> Callable[[int | str, str], None]:
        """Says that a sequence is over; there only where the instance in the process listens."""
        if not self._has_sequence_ended:
            raise AttributeError("sequence_ended")
        return self._sequence_ended

    def execute(self, batch: Batch) -> "Answer | Future[Answer]":
        """Send the batch, and return its answer, or a future of it once this is attached."""
        future = self._begin(batch)
        if self._attached:
            return future
        try:
            self._wait_for(future)
        except TimeoutError:
            self.process.kill_overdue()
            raise self.lost(self.process.end()) from None
        except Exception as error:  # noqa: BLE001 - what a process sends may be anything
            raise self.lost(self.process.end(broken(error))) from None
        return future.result()

    def attach(self) -> None:
        """`execute` returns futures from now on, which `take` sets."""
        self._attached = True

    def comes_alone(self, alone: bool) -> None:
        """Say whether the batch that is executed next is a single request that came alone."""
        self._alone = alone

    def take(self, frame: Frame) -> None:
        """Take what the process sends. Raises LinkBrokenError for what is out of order."""
        kind, number = frame.kind, frame.number
        if kind == Kind.DYING:
            self.process.dies(frame)
            return
        decoder = Decoder(frame.body, self.work.memory.read)
        if kind in (Kind.ANSWER, Kind.STRINGS, Kind.FAILED):
            try:
                batch, future = self._open.pop(number)
            except KeyError:
                raise LinkBrokenError(f"there is no batch {number}") from None
            self._answered(number, batch, future, decoder, kind == Kind.FAILED)
        elif kind == Kind.OPENED:
            self._sender(number, decoder.value())
        elif kind in (Kind.RESPONSE, Kind.STRING_RESPONSE):
            index, final = decoder.value()
            self._respond(number, index, bool(final), decoder)
        elif kind == Kind.DROPPED:
            self._senders.pop((number, decoder.value()), None)
            self._forget(number)
        else:
            raise LinkBrokenError(f"a frame of kind {kind}")

    def lost(self, reason: str) -> WorkerDiedError:
        """The process has ended: end the responses of all senders; the error of the batches that it held."""
        error = held(self._name, reason)
        senders, self._senders = self._senders, {}
        for sender in senders.values():
            sender.post(error, final=True)
        for number in self._open:
            self.process.requests.pop(number, None)
        self._open.clear()
        self.work.close()
        return error

    def close(self) -> None:
        """Close the instance; its model and process too, unless it shares them."""
        if self.work is self.process.work:
            self.process.close()
        else:
            self.process.detach(self.work)

    def _wait_for(self, future: "Future[Answer]") -> None:
        """Take what the process sends until a batch is answered and its senders have ended.

        Raises TimeoutError if an answer takes longer than an execution may.
        """
        limit, work = self.process.limits.execution, self.work
        until = monotonic() + limit
        while not future.done() or self._senders:
            work.socket.settimeout(max(0.001, until - monotonic()) if limit and not future.done() else None)
            for frame in work.receive():
                self.take(frame)
        work.socket.settimeout(None)

    def _begin(self, batch: Batch) -> "Future[Answer]":
        process = self.process
        number = next(process.numbers)
        body = b""
        with suppress(LinkClosedError):  # the shared process has ended: `send` below raises the same
            encoder = Encoder(self.work)
            put_batch(encoder, batch, self._outputs)
            body = encoder.body()
        future = PendingAnswer()
        self._open[number] = batch, future
        process.requests[number] = batch.requests
        cancelled = process.control.cancelled
        for index, request in enumerate(batch.requests):
            request.on_cancelled = partial(cancelled, number, index)
            if request.cancelled:
                request.on_cancelled()
        try:
            self.work.send(Kind.EXECUTE_ALONE if self._alone else Kind.EXECUTE, number, body)
        except LinkClosedError:
            if not self._attached:
                raise self.lost(process.end()) from None
        return future

    def _answered(self, number: int, batch: Batch, future: "Future[Answer]", decoder: Decoder, failed: bool) -> None:
        self._forget(number)
        if failed:
            future.set_exception(error_in(decoder))
            return
        future.set_result(answer_in(decoder, batch))

    def _sender(self, number: int, index: int) -> Sender:
        sender = self._senders.get((number, index))
        if sender is None:
            opened = self._open.get(number)
            if opened is None or not 0 <= index < len(opened[0].requests):
                raise LinkBrokenError(f"there is no request {index} of batch {number}")
            sender = self._senders[number, index] = opened[0].sender(index)
        return sender

    def _respond(self, number: int, index: int, final: bool, decoder: Decoder) -> None:
        sender = self._sender(number, index)
        reply: Any = reply_in(decoder)
        try:
            room = sender.post(reply, final)
        except NaiadError as error:
            room = sender.post(error, final=True)
            if not final:  # the process knows nothing of that, and goes on
                self._senders[number, index] = NullSender()
                self.process.control.cancelled(number, index)
        if final:
            del self._senders[number, index]
            self._forget(number)
        elif room is None:
            self.process.control.room(number, index)
        else:
            room.add_done_callback(lambda done: self.process.control.room(number, index))

    def _forget(self, number: int) -> None:
        """Drop the requests of a batch that was answered and has no senders."""
        if self._senders and any(each == number for each, _ in list(self._senders)):  # the loop may add some meanwhile
            return
        if number not in self._open:
            self.process.requests.pop(number, None)

    def _sequence_ended(self, correlation_id: int | str, reason: str) -> None:
        encoder = Encoder(self.work)
        encoder.value([correlation_id, reason])
        try:
            self.work.send(Kind.SEQUENCE_ENDED, 0, encoder.body())
        except LinkClosedError:
            if not self._attached:
                raise


class PendingAnswer(Future[Answer]):
    """The answer to a batch: a future that is set once and has one callback, for a tenth of what a plain one costs.

    The callback may be added on one thread while the answer comes on another.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answer: Answer = ()
        self._error: BaseException | None = None
        self._callback: Callable[[Future[Answer]], object] | None = None
        self._is_done = False

    def done(self) -> bool:
        """Whether it is set."""
        return self._is_done

    def result(self, timeout: float | None = None) -> Answer:
        """The answer, once it is set. Raises the error in its place."""
        if self._error is None:
            return self._answer
        try:
            raise self._error
        finally:
            del self  # which the error's traceback would hold, and which holds the error

    def set_result(self, result: Answer) -> None:
        """Set the answer."""
        self._answer = result
        self._end()

    def set_exception(self, exception: BaseException | None) -> None:
        """Set the error."""
        self._error = exception
        self._end()

    def add_done_callback(self, fn: "Callable[[Future[Answer]], object]") -> None:
        """Call that with this future when it is set, on the thread that sets it; at once if it is."""
        with self._lock:
            if not self._is_done:
                self._callback = fn
                return
        fn(self)

    def _end(self) -> None:
        with self._lock:
            self._is_done = True
            callback, self._callback = self._callback, None
        if callback is not None:
            callback(self)
