"""A queue of a model that streams, whose batches and responses a test sends by hand."""

from collections.abc import Callable, Sequence
from typing import Any

from naiad._engine.streams import StreamSender
from naiad.backend import Reply
from naiad.errors import NaiadError
from naiad.scheduler import Scheduler
from naiad.server import Outcome
from naiad_config import DataType, ModelConfig, ModelOutput, ModelTransactionPolicy

from .driven import DrivenQueue
from .schedulers import Recording

END = "end"


class DrivenStreams(DrivenQueue):
    """Its model is decoupled unless a test says otherwise, and sends numbers, with FLOATS and TEXT if need be."""

    def __init__(
        self, make_scheduler: Callable[[], Scheduler] = Recording, slots: int = 1, decoupled: bool = True
    ) -> None:
        policy = ModelTransactionPolicy(decoupled=decoupled)
        kinds = {"FLOATS": DataType.TYPE_FP32, "TEXT": DataType.TYPE_STRING}
        outputs = tuple(ModelOutput(name=name, data_type=kind, dims=(-1,)) for name, kind in kinds.items())
        super().__init__(make_scheduler, slots, ModelConfig(name="m", output=outputs, model_transaction_policy=policy))

    def sender(self, name: str) -> StreamSender:
        """The sender of a request that executes; only who asked for it holds it once the batch is back."""
        for work in self.sent:
            for index, request in enumerate(work.batch.requests):
                if request.id == name:
                    sender = work.batch.sender(index)
                    assert isinstance(sender, StreamSender)
                    return sender
        raise AssertionError(f"{name} does not execute")

    def stream_on(self, index: int = 0, outcomes: Sequence[Outcome | None] = ()) -> None:
        """Let a batch come back whose requests are answered through their senders, but for the outcomes given."""
        work = self._taken(index)
        work.outcomes = outcomes or [None] * len(work.calls)
        self.queue.done(work)

    def got(self, name: str) -> list[Any]:
        """What a caller was delivered, as numbers, END and names of errors; what ended the call in a tuple."""
        return [value_of(outcome) for outcome in self.outcomes[name]]


def number(value: int) -> Reply:
    """A response that bears that number."""
    return Reply({}, {"number": value})


def value_of(outcome: Outcome) -> Any:
    """An outcome in short; see `DrivenStreams.got`."""
    if isinstance(outcome, NaiadError):
        return (type(outcome).__name__,)
    if outcome.error is not None:
        return type(outcome.error).__name__
    content = END if outcome.is_empty else outcome.parameters["number"]
    return (content,) if outcome.final else content
