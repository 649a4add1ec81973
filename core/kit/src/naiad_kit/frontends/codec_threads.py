"""Codec threads of one frontend: large payloads are decoded and encoded off the event loop.

A thread pool of our own: the event loop's default one is shared by everything that calls `asyncio.to_thread`, a queued
piece of work must be dropped when its client disconnects, and no thread may keep the process from its end.
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from naiad.errors import InternalError, RequestCancelledError

_T = TypeVar("_T")

LARGE_BYTES = 1 << 20
"""Payloads from this size are worth a thread crossing (about 0.1 ms) even if their work is one copy."""

_THREADS = 2


class CodecJob(Generic[_T]):
    """One call that waits for a thread, runs on it, or is over."""

    __slots__ = ("_loop", "_on_done", "_work")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[], _T],
        on_done: Callable[[_T | BaseException], None],
    ) -> None:
        self._loop = loop
        self._work: Callable[[], _T] | None = work
        self._on_done: Callable[[_T | BaseException], None] | None = on_done

    @property
    def cancelled(self) -> bool:
        """Whether nothing waits for the result (any more)."""
        return self._on_done is None

    def cancel(self) -> None:
        """Drop the result, and the work itself unless it runs already. Call it on the event loop."""
        self._work = self._on_done = None

    def fail(self, error: BaseException) -> None:
        """Post an error instead of a result, in the next round of the event loop. Call it there."""
        self._work = None
        self._loop.call_soon(self._finish, error)

    def run(self) -> None:
        """Do the work and post its result to the event loop. Called on a codec thread."""
        work, self._work = self._work, None
        if work is None:
            return
        result: _T | BaseException
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - the thread goes on, whatever a decoder raises
            result = error
        del work
        try:
            self._loop.call_soon_threadsafe(self._finish, result)
        except RuntimeError:  # the event loop is closed: no caller waits
            self.cancel()
        finally:
            del result  # a traceback holds this frame, and this frame would hold the error

    def _finish(self, result: _T | BaseException) -> None:
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            on_done(result)


class CodecThreads:
    """Runs work in its order of arrival on a few daemon threads, which start with the first work."""

    def __init__(self, name: str = "naiad-codec", threads: int = _THREADS) -> None:
        self._name = name
        self._limit = threads
        self._jobs: SimpleQueue[CodecJob[Any] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def __del__(self) -> None:
        """End idle threads with their owner. `SimpleQueue.put` may run within itself, as a destructor can."""
        self.close()

    def submit(
        self,
        work: Callable[[], _T],
        on_done: Callable[[_T | BaseException], None],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> CodecJob[_T]:
        """Call `work` on a thread, then `on_done` on `loop` (the running one) with its result or with what it raised.

        Call it on the event loop. Raises RequestCancelledError after `close`.
        """
        if self._closed:
            raise RequestCancelledError("the server stops, and decodes no more large payloads")
        job = CodecJob(loop or asyncio.get_running_loop(), work, on_done)
        if len(self._threads) < self._limit:
            thread = threading.Thread(target=_run_jobs, args=(self._jobs,), name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # no more threads: those that there are take the work, without any it fails
                if not self._threads:
                    job.fail(InternalError(f"no thread can be started ({error}); raise ulimit -u"))
                    return job
            else:
                self._threads.append(thread)
        self._jobs.put(job)
        return job

    async def run(self, work: Callable[[], _T]) -> _T:
        """What `work` returns on one of the threads. A task that is cancelled here drops the work."""
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        job = self.submit(work, partial(_settle, future))
        del work
        try:
            return await future
        finally:
            job.cancel()
            del future, job  # a future holds its error, and the error's traceback holds this frame

    def close(self) -> None:
        """Start no more work. What runs ends on its own; nothing waits for it."""
        self._closed = True
        for _ in self._threads:
            self._jobs.put(None)


def _settle(future: "asyncio.Future[_T]", result: _T | BaseException) -> None:
    if future.done():
        return
    if isinstance(result, BaseException):
        future.set_exception(result if isinstance(result, Exception) else RuntimeError(repr(result)))
    else:
        future.set_result(result)


def _run_jobs(jobs: "SimpleQueue[CodecJob[Any] | None]") -> None:
    while True:
        job = jobs.get()
        if job is None:
            return
        job.run()
        del job  # or the last payload would stay until the next one comes
