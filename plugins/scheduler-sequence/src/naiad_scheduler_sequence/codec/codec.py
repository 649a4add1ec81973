"""The batch codec of a sequence model: controls, implicit states, and the row of each request in a batch."""

from collections.abc import Sequence
from dataclasses import replace

from naiad.backend import Answer, Batch, Instance, ModelContext, Reschedule
from naiad.codec import CodecQueue, ResponseBuilder
from naiad.server import Outcome
from naiad.types import Request
from naiad_kit.sequences import SequenceEndReason
from naiad_scheduler_sequence.codec.answers import SequenceAnswers
from naiad_scheduler_sequence.codec.queue_codec import SequenceQueueCodec
from naiad_scheduler_sequence.codec.tensors import SequenceTensors, sequence_tensors


class SequenceCodec:
    """A `naiad.codec.BatchCodec` for one model version with `sequence_batching`."""

    def __init__(self, model: str, batching: bool, tensors: SequenceTensors) -> None:
        self._tensors = tensors
        self._answers = SequenceAnswers(model, batching, tensors)

    def read(self, answer: Answer, batch: Batch, responses: ResponseBuilder) -> Sequence[Outcome | Reschedule | None]:
        """One outcome a row, the states noted in the rows; see `SequenceAnswers`."""
        return self._answers.read(answer, batch, responses)

    def warmup_request(self, request: Request, index: int) -> Request:
        """The request with controls and states; without a correlation id it is a sequence of its own."""
        if not request.correlation_id:
            request = replace(request, correlation_id=index, sequence_start=True, sequence_end=True)
        return self._tensors.alone(request)

    def warmed_up(self, instance: Instance, requests: Sequence[Request]) -> None:
        """Tell the instance of the sequences that are over, so that nothing of them is left in it."""
        listener = getattr(instance, "sequence_ended", None)
        if listener is not None:
            for request in requests:
                if request.sequence_end:
                    listener(request.correlation_id, SequenceEndReason.END)

    def open(self, queue: CodecQueue) -> SequenceQueueCodec:
        """The sequences of that queue."""
        return SequenceQueueCodec(self._answers, queue)


def sequence_codec(context: ModelContext) -> SequenceCodec | None:
    """The codec that a configuration asks for, the files of its states read; None without sequences. Blocks.

    Raises InvalidArgumentError naming the state, and the file where it cannot be read or holds too little.
    """
    tensors = sequence_tensors(context)
    return None if tensors is None else SequenceCodec(context.config.name, context.config.max_batch_size > 0, tensors)
