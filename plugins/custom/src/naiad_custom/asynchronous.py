"""Models written as `async def`: an instance with an event loop of its own, which runs several batches at once."""

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from naiad.backend import Answer, Batch
from naiad.errors import ShuttingDownError
from naiad_custom.conversion import Conversion

if TYPE_CHECKING:
    from naiad_custom.native import Subject


class AsyncInstance:
    """Runs up to `concurrency` calls at once; the kernel gives it no more batches than that."""

    def __init__(self, subject: "Subject", convert: Conversion, concurrency: int) -> None:
        self.concurrency = concurrency
        self._subject = subject
        self._convert = convert
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="naiad-async-model", daemon=True)
        self._thread.start()

    def execute(self, batch: Batch) -> "Future[Answer]":
        """Start a call on the event loop; the future has its answer."""
        return asyncio.run_coroutine_threadsafe(self._answer(batch), self._loop)

    def wait_for(self, action: Callable[[], Any]) -> None:
        """Run a load or close of the user's, plain or `async def`, on the event loop and wait until it is done."""
        asyncio.run_coroutine_threadsafe(_done(action), self._loop).result()

    def ready(self) -> str:
        """Why the user's object is not ready, "" when it is."""
        return self._subject.ready()

    def close(self) -> None:
        """Cancel what still runs, close the user's object, end the event loop."""
        try:
            self.wait_for(self._cancel_all)
            self.wait_for(self._subject.close)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """End the event loop and its thread, without a word to the user's object."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _answer(self, batch: Batch) -> Answer:
        arguments = self._convert.arguments(batch)
        try:
            return self._convert.outputs(await self._subject.call(**arguments), arguments)
        except asyncio.CancelledError:
            raise ShuttingDownError("the model was unloaded while it worked on this request") from None

    async def _cancel_all(self) -> None:
        calls = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()


async def _done(action: Callable[[], Any]) -> None:
    outcome = action()
    if inspect.isawaitable(outcome):
        await outcome
