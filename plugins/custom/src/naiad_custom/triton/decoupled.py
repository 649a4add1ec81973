"""Decoupled TritonPythonModels: instances whose requests are answered by response senders."""

import asyncio
import inspect
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

from naiad.backend import RESCHEDULE, Answer, Batch, Placement, Reschedule
from naiad.errors import ModelFailedError, NaiadError
from naiad_custom.asynchronous import why_cancelled
from naiad_custom.context import PythonContext
from naiad_custom.failures import Failures
from naiad_custom.triton.execution import ExecutionScope, enter_scope, explain_missing_input, leave_scope
from naiad_custom.triton.instance import TritonInstance
from naiad_custom.triton.request import InferenceRequest, received_requests
from naiad_custom.triton.sender import InferenceResponseSender
from naiad_tensors.devices import Device


class DecoupledInstance(TritonInstance):
    """One initialized TritonPythonModel that is decoupled.

    An `async def execute` goes on in the background while the instance takes its next batches.
    """

    def __init__(
        self,
        model: Any,
        placement: Placement,
        outputs: Sequence[str],
        context: PythonContext,
        input_devices: Collection[Device],
        on_closed: Callable[[], None],
    ) -> None:
        super().__init__(model, placement.name, outputs, context.models, input_devices, on_closed)
        self._failures = Failures(context, placement)
        sequences = context.config.sequence_batching
        self._is_iterative = sequences is not None and sequences.iterative_sequence

    def execute(self, batch: Batch) -> "Answer | Future[Answer]":
        """Run one batch. Raises ModelFailedError when `execute` returns something.

        If requests may be rescheduled, an `async def execute` must end first: only then is it known which.
        """
        senders = [
            InferenceResponseSender(batch.sender(index), request, decoupled=True)
            for index, request in enumerate(batch.requests)
        ]
        requests = received_requests(batch.requests, self._outputs, None, senders)
        del senders  # dropping the last reference to one ends its request
        scope = ExecutionScope(self._models, batch.requests)
        scope.calls()  # bind the calls on the executing thread: a background task no longer occupies the instance
        token = enter_scope(scope)
        try:
            answer = self._execute(requests)
            if inspect.iscoroutine(answer):
                running = self._start(self._watched(answer, requests))
                return running if self._is_iterative else [None] * len(requests)
        except (AttributeError, TypeError) as error:
            explain_missing_input(error)
            raise
        finally:
            leave_scope(token)
        self._check(answer)
        return _released(requests)

    async def _watched(self, answer: Coroutine[Any, Any, Any], requests: list[InferenceRequest]) -> Answer:
        try:
            self._check(await answer)
        except asyncio.CancelledError:
            _fail(requests, why_cancelled([request._request for request in requests]))
        except BaseException as error:  # noqa: BLE001 - a model may raise anything, and its callers must get an error
            if isinstance(error, (AttributeError, TypeError)):
                explain_missing_input(error)
            _fail(requests, self._failures.of(error, requests[0]._request))
        else:
            return _released(requests)
        return [None] * len(requests)

    def _check(self, answer: Any) -> None:
        if answer is not None:
            raise ModelFailedError(
                f"Python model '{self._name}' is using the decoupled mode and the execute function must return None; "
                f"it returned '{type(answer).__name__}', so send the responses through get_response_sender()"
            )


def _released(requests: Sequence[InferenceRequest]) -> list[Reschedule | None]:
    return [RESCHEDULE if request._is_rescheduled else None for request in requests]


def _fail(requests: Sequence[InferenceRequest], error: NaiadError) -> None:
    for request in requests:
        request.get_response_sender()._fail(error)
