"""An instance of a TritonPythonModel: a batch in, one response per request out."""

import functools
import inspect
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from naiad.backend import RESCHEDULE, Answer, Batch, Reply, Reschedule
from naiad.errors import ModelFailedError, NaiadError
from naiad_custom.loops import LoopThread
from naiad_custom.triton.execution import (
    ExecutionScope,
    current_scope,
    enter_scope,
    explain_missing_input,
    leave_scope,
    outside_of_execute,
)
from naiad_custom.triton.readiness import reason_of
from naiad_custom.triton.replies import reply_of
from naiad_custom.triton.request import (
    TRITONSERVER_REQUEST_RELEASE_ALL,
    InferenceRequest,
    received_requests,
)
from naiad_custom.triton.response import TRITONSERVER_RESPONSE_COMPLETE_FINAL, InferenceResponse
from naiad_custom.triton.sender import Senders
from naiad_custom.triton.suspension import suspendable_task
from naiad_kit.calls import ModelCalls
from naiad_tensors.devices import Device

_T = TypeVar("_T")


class TritonInstance:
    """One initialized TritonPythonModel that answers each request once; `models` are those that it may call.

    It takes tensors on `input_devices` where they are, and calls `on_closed` at its end. An `async def execute` runs on
    an event loop of the instance, where the tasks that it leaves behind go on.
    """

    def __init__(
        self,
        model: Any,
        name: str,
        outputs: Sequence[str],
        models: ModelCalls,
        input_devices: Collection[Device],
        on_closed: Callable[[], None],
    ) -> None:
        self.input_devices = input_devices
        self._models = models
        self._model = model
        self._name = name
        self._outputs = outputs
        self._on_closed = on_closed
        self._execute: Callable[[list[Any]], Any] = model.execute
        self._thread: LoopThread | None = None
        self._running: set[Future[Any]] = set()

    def execute(self, batch: Batch) -> "Answer | Future[Answer]":
        """Run one batch. Raises ModelFailedError when the answer is not a list with one response per request.

        None in the list, or in its place, is for requests that are answered through their senders.
        """
        senders = Senders(batch)
        requests = received_requests(batch.requests, self._outputs, senders)
        token = enter_scope(ExecutionScope(self._models, batch.requests))
        try:
            responses = self._execute(requests)
            if type(responses) is not list:
                responses = self._list_of(responses, requests)
        except (AttributeError, TypeError) as error:
            explain_missing_input(error)
            raise
        finally:
            senders.close()
            leave_scope(token)
        if len(responses) != len(requests):
            raise ModelFailedError(
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                f"InferenceRequest(s) size is:{len(requests)}, and InferenceResponse(s) size is:{len(responses)}; "
                "execute must return one response per request, in order"
            )
        replies: list[Reply | NaiadError | Reschedule | None] = []
        for each, request in zip(responses, requests, strict=True):
            is_plain = type(each) is InferenceResponse and request._sender is None
            if is_plain and request._release_flags == TRITONSERVER_REQUEST_RELEASE_ALL:  # a property takes 0.1 µs
                replies.append(reply_of(each, request))
            else:
                replies.append(_reply(each, request))
        return replies

    @property
    def ready(self) -> Callable[[], str]:
        """Says why `is_ready` says no, "" when it says yes; there only where the object has `is_ready`."""
        return functools.partial(reason_of, self._model.is_ready)

    @property
    def sequence_ended(self) -> Callable[[int | str, str], Any]:
        """The object's own method to call when a sequence has ended. Raises AttributeError when it has none."""
        listener: Callable[[int | str, str], Any] = self._model.sequence_ended
        return listener

    def close(self) -> None:
        """End what runs in the background, then finalize the object."""
        if self._thread is not None:
            self._thread.cancel_all()
        try:
            if hasattr(self._model, "finalize"):
                with outside_of_execute():
                    self._model.finalize()
        finally:
            if self._thread is not None:
                self._thread.end()
            self._on_closed()

    def _start(self, coroutine: Coroutine[Any, Any, _T]) -> "Future[_T]":
        """Run a coroutine on the event loop of the instance."""
        if self._thread is None:
            self._thread = LoopThread("naiad-async-execute")
            self._thread.loop.set_task_factory(suspendable_task)
        running = self._thread.start(coroutine)
        self._running.add(running)  # a task that nothing refers to may vanish
        running.add_done_callback(self._running.discard)
        return running

    def _list_of(self, answer: Any, requests: Sequence[InferenceRequest]) -> list[Any]:
        """The list in an answer that is none by type: awaited, or None where senders were taken."""
        if inspect.iscoroutine(answer):
            answer = self._awaited(answer)
        if answer is None and any(request._sender is not None or request._is_rescheduled for request in requests):
            return [None] * len(requests)
        if not isinstance(answer, list):
            raise ModelFailedError(
                f"Expected a list in the execute return, found type '{type(answer).__name__}'; return a list with one "
                "InferenceResponse a request"
            )
        return answer

    def _awaited(self, answer: Coroutine[Any, Any, Any]) -> Any:
        scope = current_scope()
        if scope is not None:
            scope.calls()  # here, on the thread that executes
        answer, error = self._start(_outcome_of(answer)).result()
        if error is None:
            return answer
        try:
            raise error
        finally:
            del error  # which refers to this frame


async def _outcome_of(answer: Coroutine[Any, Any, Any]) -> tuple[Any, BaseException | None]:
    """What was awaited, or what it raised: a task that raises is kept by the traceback of its own exception."""
    try:
        return await answer, None
    except BaseException as error:  # noqa: BLE001 - the caller raises it
        return None, error


def _reply(response: Any, request: InferenceRequest) -> Reply | NaiadError | Reschedule | None:
    sender = request._sender
    if request._is_rescheduled:
        return _rescheduled(response)
    if type(response) is not InferenceResponse and not isinstance(response, InferenceResponse):
        if response is None and sender is not None:
            return None
        return ModelFailedError(
            "Expected an 'InferenceResponse' object in the execute function return list, found type "
            f"'{type(response).__name__}'; None is for requests whose response sender was taken"
        )
    if sender is not None:
        sender.send(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
    return reply_of(response, request)


def _rescheduled(response: Any) -> Reschedule | NaiadError:
    if response is None:
        return RESCHEDULE
    return ModelFailedError(
        "Expected a None object in the execute function return list for reschduled request, found type "
        f"'{type(response).__name__}'; answer it when it is executed again"
    )
