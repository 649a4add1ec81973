"""Models written as `async def`: an instance with its own event loop, which runs several batches concurrently."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

from naiad.backend import Answer, Batch
from naiad.errors import ModelFailedError, NaiadError, RequestCancelledError, ShuttingDownError
from naiad.types import Request
from naiad_custom.conversion import Conversion
from naiad_custom.loops import LoopThread, cancelled_with, have_left
from naiad_custom.user_object import Listener, UserInstance, UserObject


class AsyncInstance(UserInstance):
    """Runs up to `concurrency` calls at once; the kernel gives it no more batches than that.

    `answer` is what becomes of a batch, on the event loop of the instance.
    """

    def __init__(
        self, user_object: UserObject, answer: Callable[[Batch], Coroutine[Any, Any, Answer]], concurrency: int
    ) -> None:
        self.concurrency = concurrency
        super().__init__(user_object)
        self._answer = answer
        self._thread = LoopThread("naiad-async-model")

    def execute(self, batch: Batch) -> "Future[Answer]":
        """Start a call on the event loop; the future has its answer."""
        return self._thread.start(self._answer(batch))

    def wait_for(self, action: Callable[[], Any]) -> None:
        """Run a load or close of the user's, plain or `async def`, on the event loop and wait until it is done."""
        self._thread.wait_for(action)

    @property
    def sequence_ended(self) -> Listener:
        """Tells the user's object, on the event loop, that a sequence is over, and why; there only where it listens."""
        listener = self._user_object.sequence_ended
        return lambda correlation_id, reason: self.wait_for(lambda: listener(correlation_id, reason))

    def close(self) -> None:
        """Cancel what still runs, close the user's object, end the event loop."""
        try:
            self._thread.cancel_all()
            self.wait_for(self._user_object.close)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """End the event loop and its thread, without a call of the user's object."""
        self._thread.end()


class Awaited:
    """Answers a batch by one call of a function that is awaited; the call is cancelled when every caller has left."""

    def __init__(self, call: Callable[..., Any], convert: Conversion) -> None:
        self._call = call
        self._convert = convert

    async def __call__(self, batch: Batch) -> Answer:
        """The function's outputs. Raises what it raised, and a NaiadError that says why it was cancelled."""
        arguments = self._convert.arguments(batch)
        try:
            with cancelled_with(batch.requests):
                return self._convert.outputs(await self._call(**arguments), arguments)
        except asyncio.CancelledError:
            raise why_cancelled(batch.requests) from None


def why_cancelled(requests: Sequence[Request]) -> NaiadError:
    """Why the running task, which works on these requests, was cancelled."""
    if have_left(requests):
        return RequestCancelledError("the caller left while the model worked on its request")
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        return ShuttingDownError("the model was unloaded while it worked on this request")
    return ModelFailedError("the model raised CancelledError; catch it where a task of the model's own is cancelled")
