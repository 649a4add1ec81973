"""A worker: the one thread on which an instance is made, warmed up, executed and closed."""

import asyncio
import functools
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from time import monotonic_ns
from typing import Any

from naiad._kernel.answers import AnswerReader, Outcome
from naiad.backend import Answer, Batch, Instance
from naiad.errors import ModelFailedError, NaiadError, WorkerDiedError

_logger = logging.getLogger("naiad.model")


class Work:
    """A batch on its way to an instance and back. `tickets` and `calls` belong to the queue that made it."""

    __slots__ = ("batch", "calls", "done_ns", "error", "outcomes", "place", "started_ns", "tickets")

    def __init__(self, place: int, tickets: Sequence[int], calls: Sequence[Any], batch: Batch) -> None:
        self.place = place
        self.tickets = tickets
        self.calls = calls
        self.batch = batch
        self.outcomes: Sequence[Outcome] = ()
        self.error: NaiadError | None = None
        self.started_ns = 0
        self.done_ns = 0

    def phases(self) -> tuple[int, int, int]:
        """Nanoseconds of compute input, infer and output."""
        batch = self.batch
        inputs = batch.input_done_ns or self.started_ns
        infer = batch.infer_done_ns or self.done_ns
        return inputs - self.started_ns, infer - inputs, self.done_ns - infer


class Worker:
    """Owns one instance and its thread.

    Everything that happens is told on the event loop: `on_done(work)` after each batch, `on_death(error, works)` when
    the thread ends with batches it had not answered. Crossing back costs one wake-up of the loop a batch.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Instance],
        reader: AnswerReader,
        loop: asyncio.AbstractEventLoop,
        on_done: Callable[[Work], None],
        on_death: Callable[["Worker", str, Sequence[Work]], None],
    ) -> None:
        self.name = name
        self.busy_since_ns = 0
        self.started: Future[Instance] = Future()
        self._make = make
        self._reader = reader
        self._loop = loop
        self._on_done = on_done
        self._on_death = on_death
        self._inbox: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._flying: dict[int, Work] = {}
        self._thread = threading.Thread(target=self._run, name=f"naiad-{name}", daemon=True)

    def start(self) -> None:
        """Make the instance on the worker's thread; `started` tells when, or why not."""
        self._thread.start()

    def execute(self, work: Work) -> None:
        """Run a batch as soon as the thread is free; never blocks."""
        self._inbox.put(work)

    def stop(self) -> None:
        """Close the instance after what was given to it before; never blocks."""
        self._inbox.put(None)

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the thread to end; whether it has."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            instance = self._make()
        except BaseException as error:  # noqa: BLE001 - whatever it was, the one who waits for the instance is told
            self.started.set_exception(_tellable(error))
            return
        self.started.set_result(instance)
        try:
            self._serve(instance)
        except BaseException as error:
            _logger.exception("the worker of instance '%s' died", self.name)
            self._die(f"{type(error).__name__}: {error}")
        _close(instance, self.name)

    def _serve(self, instance: Instance) -> None:
        while (work := self._inbox.get()) is not None:
            self.busy_since_ns = work.started_ns = monotonic_ns()
            self._flying[work.place] = work
            try:
                answer = instance.execute(work.batch)
            except Exception as error:  # noqa: BLE001 - a model may raise anything, and its callers are told
                self._fail(work, error)
                continue
            if isinstance(answer, Future):
                answer.add_done_callback(functools.partial(self._finish_later, work))
            else:
                self._finish(work, answer)

    def _finish(self, work: Work, answer: Answer) -> None:
        batch = work.batch
        if not batch.infer_done_ns:
            batch.infer_done_ns = monotonic_ns()
        try:
            work.outcomes = self._reader.read(answer, batch)
        except Exception as error:  # noqa: BLE001 - an answer can be broken in any way, and its callers are told
            self._fail(work, error)
            return
        self._hand_back(work)

    def _finish_later(self, work: Work, future: "Future[Answer]") -> None:
        error = future.exception()
        if error is not None:
            self._fail(work, error)
        else:
            self._finish(work, future.result())

    def _fail(self, work: Work, error: BaseException) -> None:
        if isinstance(error, NaiadError):
            work.error = error
        else:
            ids = ", ".join(request.id for request in work.batch.requests if request.id)
            _logger.error(
                "instance '%s' failed a batch of %d requests%s",
                self.name,
                len(work.calls),
                f" ({ids})" if ids else "",
                exc_info=error,
            )
            work.error = ModelFailedError(f"instance '{self.name}' failed: {type(error).__name__}: {error}")
        self._hand_back(work)

    def _hand_back(self, work: Work) -> None:
        work.done_ns = monotonic_ns()
        self.busy_since_ns = 0
        self._flying.pop(work.place, None)
        self._tell(self._on_done, work)

    def _die(self, reason: str) -> None:
        lost = list(self._flying.values())
        while True:
            try:
                waiting = self._inbox.get_nowait()
            except queue.Empty:
                break
            if waiting is not None:
                lost.append(waiting)
        for work in lost:
            work.done_ns = monotonic_ns()
            work.error = WorkerDiedError(
                f"the worker of instance '{self.name}' died while it held the request: {reason}; it is being replaced"
            )
        self.busy_since_ns = 0
        self._tell(self._on_death, self, reason, lost)

    def _tell(self, told: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(told, *arguments)
        except RuntimeError:  # the loop was closed before this worker ended: nobody is left to be told
            _logger.debug("instance '%s' ended after its event loop", self.name)


def _tellable(error: BaseException) -> Exception:
    """An error that a future can carry into the event loop: SystemExit would end the loop, StopIteration be refused."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    told = WorkerDiedError(f"making the instance ended its thread: {type(error).__name__}: {error}")
    told.__cause__ = error
    return told


def _close(instance: Instance, name: str) -> None:
    try:
        instance.close()
    except Exception:
        _logger.exception("closing instance '%s' failed", name)
