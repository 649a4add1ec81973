"""Triton-style models that are decoupled: they answer through senders, none, one or many times a request."""

import asyncio
import inspect
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

from naiad.backend import Batch
from naiad.errors import ModelFailedError, NaiadError, ShuttingDownError
from naiad_custom.failures import Failures
from naiad_custom.loops import LoopThread
from naiad_custom.triton.instance import TritonInstance
from naiad_custom.triton.pacing import paced_task
from naiad_custom.triton.request import InferenceRequest, received_request
from naiad_custom.triton.sender import InferenceResponseSender


class DecoupledInstance(TritonInstance):
    """One initialized TritonPythonModel that is decoupled.

    An `async def execute` goes on in the background while the instance takes its next batches.
    """

    def __init__(self, model: Any, name: str, outputs: Sequence[str], failures: Failures) -> None:
        super().__init__(model, name, outputs)
        self._failures = failures
        self._thread: LoopThread | None = None
        self._running: set[Future[None]] = set()

    def execute(self, batch: Batch) -> list[None]:
        """Run one batch. Raises ModelFailedError when `execute` returns something."""
        requests = [self._received(batch, index) for index in range(len(batch.requests))]
        answer = self._execute(requests)
        if inspect.iscoroutine(answer):
            self._start(answer, requests)
        else:
            self._check(answer)
        return [None] * len(requests)

    def close(self) -> None:
        """End what runs in the background, then finalize the object."""
        if self._thread is not None:
            self._thread.cancel_all()
        try:
            super().close()
        finally:
            if self._thread is not None:
                self._thread.end()

    def _received(self, batch: Batch, index: int) -> InferenceRequest:
        request = batch.requests[index]
        sender = InferenceResponseSender(batch.sender(index), request, decoupled=True)
        return received_request(request, self._outputs, None, sender)

    def _start(self, answer: Coroutine[Any, Any, Any], requests: list[InferenceRequest]) -> None:
        if self._thread is None:
            self._thread = LoopThread("naiad-async-execute")
            self._thread.loop.set_task_factory(paced_task)
        running = self._thread.start(self._watched(answer, requests))
        self._running.add(running)  # a task that nobody holds may vanish
        running.add_done_callback(self._running.discard)

    async def _watched(self, answer: Coroutine[Any, Any, Any], requests: list[InferenceRequest]) -> None:
        try:
            self._check(await answer)
        except asyncio.CancelledError:
            _fail(requests, ShuttingDownError("the model was unloaded while it worked on this request"))
        except Exception as error:  # noqa: BLE001 - a model may raise anything, and its callers are told
            _fail(requests, self._failures.of(error, requests[0]._request))

    def _check(self, answer: Any) -> None:
        if answer is not None:
            raise ModelFailedError(
                f"Python model '{self._name}' is using the decoupled mode and the execute function must return None; "
                f"it returned '{type(answer).__name__}', so send the responses through get_response_sender()"
            )


def _fail(requests: Sequence[InferenceRequest], error: NaiadError) -> None:
    for request in requests:
        request.get_response_sender()._fail(error)
