"""Batches of a queue whose scheduler brought a codec: the codec makes them, and takes them back."""

import logging
from collections.abc import Callable, Sequence

from naiad._engine.call import Call
from naiad._engine.execution import Execution
from naiad.backend import Instance
from naiad.codec import QueueCodec
from naiad.errors import InternalError
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.scheduler import Dispatch
from naiad.trace_events import record_phases

_logger = logging.getLogger("naiad.model")

Instruct = Callable[[int, str, Callable[[Instance], None]], None]
"""Calls something with the instance of a slot, on its own thread, where the instance has that member."""


def no_instance(slot: int, member: str, instruction: Callable[[Instance], None]) -> None:
    """There is no instance to instruct."""


class BatchBuilder:
    """Builds the executions of one queue with its codec. Lives on the event loop's thread.

    Further executions of a batch wait here until the one before has come back from their slot.
    """

    def __init__(self, codec: QueueCodec, model: str) -> None:
        self._codec = codec
        self._model = model
        self._following: dict[int, list[Execution]] = {}

    def build(self, dispatch: Dispatch, calls: Sequence[Call]) -> Execution | None:
        """The first execution of these calls, one a ticket; None where the codec leaves it to the queue.

        Raises RuntimeError when the codec finds the dispatch invalid.
        """
        slot = dispatch.instance
        executions = [
            Execution(
                slot,
                [request.ticket.id for request in planned.requests],
                planned.requests,
                planned.batch,
                dispatch.reason,
                [each.request.trace for each in planned.requests if each.request.trace is not None],
            )
            for planned in self._codec.build(dispatch, calls)
        ]
        self._following[slot] = executions[:0:-1]
        return executions[0] if executions else None

    def complete(self, execution: Execution) -> Execution | None:
        """Let the codec take an execution back; the one that follows it at its slot, where there is one.

        A fault of the codec fails the execution.
        """
        try:
            completion = self._codec.completed(execution.batch, execution.outcomes, execution.error)
            if completion is not None:
                execution.calls, execution.outcomes = completion.requests, completion.outcomes
                for requeued in completion.requeued if execution.traces else ():
                    if requeued.request.trace is not None:
                        record_phases(requeued.request.trace, execution.batch, execution.started_ns, execution.done_ns)
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("taking back a batch of model '%s' failed", self._model)
            execution.error = InternalError(f"the answer of model '{self._model}' was lost: {describe_error(error)}")
        following = self._following[execution.slot]
        return following.pop() if following else None
