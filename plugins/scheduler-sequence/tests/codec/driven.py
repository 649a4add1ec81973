"""A queue of a model of sequences whose scheduler does what a test says, and whose batches a test answers by hand."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic_ns
from typing import Any

import numpy as np

from naiad._engine.call import Call
from naiad._engine.codec_queue import CodecModelQueue
from naiad._engine.execution import Execution
from naiad._engine.responses import ResponseBuilder
from naiad.backend import Answer, Instance, ModelContext, Reply
from naiad.batch import Batch
from naiad.errors import ModelFailedError, NaiadError
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, Ticket
from naiad.server import Outcome
from naiad.types import Request, Response
from naiad_config.text import read_text
from naiad_kit.sequences import Row, SequenceEnd, SequenceEndReason
from naiad_scheduler_sequence.codec.codec import sequence_codec
from naiad_scheduler_sequence.codec.queue_codec import SequenceQueueCodec
from naiad_statistics.versions import VersionCounters
from naiad_tensors.tensors import Tensor
from naiad_testing.loops import turns

CONTROLS = """
  control_input [
    { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } },
    { name: "READY" control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } },
    { name: "END" control { kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] } },
    { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
  ]
"""
SUM = 'state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_INT32 dims: [ 1 ] }'
TENSORS = """
  input { name: "X" data_type: TYPE_INT32 dims: [ 1 ] }
  output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }
"""


def config_of(batching: str = CONTROLS + SUM, rest: str = "", max_batch_size: int = 4) -> str:
    """A configuration whose model takes X and gives Y."""
    return f'name: "m" max_batch_size: {max_batch_size} {TENSORS} sequence_batching {{ {batching} }} {rest}'


class Scripted:
    """A scheduler that waits until a test gives it a decision; `live` are the tickets that wait here."""

    def __init__(self) -> None:
        self.tickets: list[Ticket] = []
        self.calls: list[Any] = []
        self.next: list[Decision] = []
        self.refuse: Drop | None = None
        self.wants_decision = False
        self.decisions_asked_for = 0

    def arrive(self, ticket: Ticket) -> Drop | None:
        self.calls.append(("arrive", ticket.id))
        self.tickets.append(ticket)
        return self.refuse

    def settle(self, tickets: Sequence[int], now: float) -> bool:
        self.calls.append(("settle", *tickets))
        return self.wants_decision

    def lost(self, instance: int, now: float) -> None:
        self.calls.append(("lost", instance))

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self.decisions_asked_for += 1
        return self.next.pop(0) if self.next else NOTHING


class Listener:
    """An instance that notes which sequences are over."""

    def __init__(self, slot: int, ended: list[tuple[int, int | str, str]]) -> None:
        self._slot = slot
        self._ended = ended

    def execute(self, batch: Batch) -> Answer:
        raise NotImplementedError

    def sequence_ended(self, correlation_id: int | str, reason: SequenceEndReason) -> None:
        self._ended.append((self._slot, correlation_id, str(reason)))

    def close(self) -> None:
        raise NotImplementedError


class DrivenSequences:
    """`sent` are the batches that execute, `outcomes` what each request was delivered, `ended` what instances hear."""

    def __init__(
        self, config: str = "", instances: int = 1, directory: Path = Path("/nowhere"), strict: bool = True
    ) -> None:
        parsed = read_text(config or config_of(), file="").config
        codec = sequence_codec(ModelContext(parsed, 1, directory, directory / "1"))
        assert codec is not None
        self.schedulers: list[Scripted] = []
        self.sent: list[Execution] = []
        self.ended: list[tuple[int, int | str, str]] = []
        self.outcomes: dict[str, list[Outcome]] = defaultdict(list)
        self.counters = VersionCounters(devices=[-1] * instances)
        self._batching = parsed.max_batch_size > 0
        responses = ResponseBuilder(parsed, 1, strict)
        self.read: Any = partial(codec.read, responses=responses)
        self.workers = [self._take] * instances
        self.queue = CodecModelQueue(responses, self.counters, codec)
        self.queue.open(self._scheduler, self.workers, self._instruct)
        assert isinstance(self.queue.codec, SequenceQueueCodec)
        self.sequences = self.queue.codec
        for slot in range(instances):
            self.queue.free(slot)

    @property
    def scheduler(self) -> Scripted:
        return self.schedulers[-1]

    def submit(self, name: str, value: int = 0, who: int | str = 7, **fields: Any) -> Call:
        """A request whose X is [[value]]; its ticket is the number of the submission, from 1 up."""
        shape = (1, 1) if self._batching else (1,)
        tensor = Tensor.of("X", np.full(shape, value, dtype=np.int32))
        request = Request("m", {"X": tensor}, id=name, correlation_id=who, **fields)
        return self.queue.submit(request, 1, None, self.outcomes[name].append)

    async def decide(self, *rows: Row, slot: int = 0, ended: Sequence[SequenceEnd] = ()) -> None:
        """Let the scheduler send these rows now."""
        tickets = tuple(row.ticket for row in rows if row.ticket)
        dispatches = (Dispatch(slot, tickets, "requested", rows),) if tickets else ()
        await self.follow(Decision(dispatches, ended=tuple(ended)))

    async def follow(self, decision: Decision) -> None:
        """Let the scheduler decide that now."""
        await turns()
        self.scheduler.next = [decision]
        self.queue._decide()
        await turns()

    def batch(self, index: int = 0) -> Batch:
        """A batch that executes."""
        return self.sent[index].batch

    def answer(self, model: Callable[[Batch], Answer], index: int = 0) -> None:
        """Let the model execute a batch, as its worker would."""
        execution = self.sent.pop(index)
        execution.started_ns = monotonic_ns()
        try:
            execution.outcomes = self.read(model(execution.batch), execution.batch)
        except NaiadError as error:
            execution.error = error
        except ArithmeticError as error:
            execution.error = ModelFailedError(str(error))
        execution.done_ns = monotonic_ns()
        self.queue.done(execution)

    def die(self, error: NaiadError, index: int = 0) -> None:
        """Lose a batch with the instance that executes it."""
        execution = self.sent.pop(index)
        execution.error, execution.started_ns, execution.done_ns = error, monotonic_ns(), monotonic_ns()
        self.queue.lose(execution.slot)
        self.queue.lost(execution)

    def response(self, name: str) -> Response:
        """The one response that a request was delivered."""
        (outcome,) = self.outcomes[name]
        assert isinstance(outcome, Response), outcome
        return outcome

    def value(self, name: str) -> int:
        """Y in the response to a request."""
        return int(self.response(name).outputs["Y"].array.ravel()[0])

    def error(self, name: str) -> NaiadError:
        """The error that a request was delivered, and nothing else."""
        (outcome,) = self.outcomes[name]
        assert isinstance(outcome, NaiadError)
        return outcome

    def _scheduler(self) -> Scripted:
        self.schedulers.append(Scripted())
        return self.schedulers[-1]

    def is_open(self, who: int | str) -> bool:
        """Whether a request that carries on that sequence would be kept here."""
        return self.sequences.keeps(Request("m", {}, correlation_id=who))

    def _take(self, execution: Execution) -> None:
        self.sent.append(execution)

    def _instruct(self, slot: int, member: str, instruction: Callable[[Instance], None]) -> None:
        assert member == "sequence_ended"
        instruction(Listener(slot, self.ended))


def summing(batch: Batch) -> Mapping[str, np.ndarray]:
    """Y is the sum of all X of a sequence so far."""
    total = batch.input("X") + batch.input("SUM_IN")
    return {"Y": total, "SUM_OUT": total}


def failing(batch: Batch) -> Mapping[str, np.ndarray]:
    """A model that does not execution."""
    raise ArithmeticError("it does not work")


def seen(batch: Batch, name: str) -> list[Any]:
    """One value a row."""
    return [request.inputs[name].array.ravel()[0] for request in batch.requests]


def end(number: int, reason: SequenceEndReason = SequenceEndReason.IDLE, slot: int = 0) -> SequenceEnd:
    """A sequence that is over."""
    return SequenceEnd(slot, number, reason)


def reply(value: int, state: int | None = None) -> Reply:
    """A reply with that Y, and perhaps a state."""
    outputs = {"Y": np.full((1, 1), value, np.int32)}
    return Reply(outputs if state is None else {**outputs, "SUM_OUT": np.full((1, 1), state, np.int32)})


def sent(driven: DrivenSequences, name: str) -> list[Any]:
    """Y in each response that a request was delivered, "end" for an empty one."""
    return [
        int(each.outputs["Y"].array[0, 0]) if isinstance(each, Response) and each.outputs else "end"
        for each in driven.outcomes[name]
    ]
