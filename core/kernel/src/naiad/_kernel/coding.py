"""What a batch codec does beside a queue: the batches that it makes, and what becomes of them when they come back."""

import logging
from collections.abc import Callable, Sequence

from naiad._kernel.assembling import Assembler
from naiad._kernel.call import Call
from naiad._kernel.worker import Work
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


class CodedAssembler:
    """Makes the batches of a queue whose scheduler brought a codec: the codec's own, or those of `plain`.

    Further executions of a batch wait here until the one before has come back from their slot. Lives on the event loop.
    """

    def __init__(self, plain: Assembler, codec: QueueCodec, model: str) -> None:
        self._plain = plain
        self._codec = codec
        self._model = model
        self._following: dict[int, list[Work]] = {}

    def work(self, dispatch: Dispatch, calls: Sequence[Call]) -> Work:
        """The first execution of these calls, one a ticket. Raises RuntimeError when the codec finds them invalid."""
        slot = dispatch.instance
        works = [
            Work(slot, [request.ticket.id for request in execution.requests], execution.requests, execution.batch)
            for execution in self._codec.build(dispatch, calls)
        ]
        self._following[slot] = works[:0:-1]
        return works[0] if works else self._plain.work(dispatch, calls)

    def complete(self, work: Work) -> Work | None:
        """Let the codec take an execution back; the one that follows it at its slot, where there is one.

        A fault of the codec fails the execution.
        """
        try:
            completion = self._codec.completed(work.batch, work.outcomes, work.error)
            if completion is not None:
                work.calls, work.outcomes = completion.requests, completion.outcomes
                for requeued in completion.requeued if work.traces else ():
                    if requeued.request.trace is not None:
                        record_phases(requeued.request.trace, work.batch, work.started_ns, work.done_ns)
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("taking back a batch of model '%s' failed", self._model)
            work.error = InternalError(f"the answer of model '{self._model}' was lost: {describe_error(error)}")
        following = self._following[work.place]
        return _traced(following.pop(), work) if following else None


def _traced(following: Work, earlier: Work) -> Work:
    """The execution that follows another one of the same dispatch, with its traces, where there are any."""
    following.traces = [call.request.trace for call in following.calls if call.request.trace is not None]
    following.reason = earlier.reason
    return following
