"""A server with a model of sequences, whose scheduler does what a test says, and whose batches a test answers by hand.

Plugins of the tests bring the scheduler, the workers and the backend; the codec is that of `naiad_scheduler_sequence`.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from naiad import Server
from naiad.backend import Answer, BackendTraits, Instance, ModelContext, Placement, Reply
from naiad.batch import Batch
from naiad.codec import CodecQueue
from naiad.errors import NaiadError
from naiad.extend import MakeWorker, WorkerKind, WorkItem
from naiad.hookspecs import hookimpl
from naiad.reports import VersionReport
from naiad.scheduler import Decision, Dispatch, Drop, SchedulerFactory, Ticket
from naiad.server import Outcome, SubmittedRequest
from naiad.types import Request, Response
from naiad.workers import InstanceWorker
from naiad_config import ModelConfig
from naiad_kit.sequences import Row, SequenceEnd, SequenceEndReason
from naiad_scheduler_sequence.codec.codec import SequenceCodec
from naiad_scheduler_sequence.codec.queue_codec import SequenceQueueCodec
from naiad_scheduler_sequence.codec.tensors import sequence_tensors
from naiad_scheduler_sequence.factory import SequenceBatching
from naiad_statistics.reports import ModelStatistics
from naiad_tensors.tensors import Tensor
from naiad_testing.in_loop import running, write_model
from naiad_testing.loops import jump, passing_time, turns
from naiad_testing.steered import Steered, SteeredModel

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
WAKE_SECONDS = 1.0
"""When the scheduler wants to be asked again: what a test lets pass when it has a decision."""


def config_of(batching: str = CONTROLS + SUM, rest: str = "", max_batch_size: int = 4) -> str:
    """A configuration whose model takes X and gives Y."""
    return f'name: "m" max_batch_size: {max_batch_size} {TENSORS} sequence_batching {{ {batching} }} {rest}'


class Scripted:
    """A scheduler that waits until a test gives it a decision; `tickets` are those that came to it."""

    def __init__(self, orders_dispatches: bool = False) -> None:
        self.orders_dispatches = orders_dispatches
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
        decision = self.next.pop(0) if self.next else Decision()
        return replace(decision, wake_at=now + WAKE_SECONDS)


class ObservedCodec(SequenceCodec):
    """The codec of the plugin; `opened` is what it made for the queue of the version."""

    opened: SequenceQueueCodec

    def open(self, queue: CodecQueue) -> SequenceQueueCodec:
        self.opened = super().open(queue)
        return self.opened


class ScriptedBatching(SequenceBatching):
    """The plugin's factory with other schedulers: `schedulers` are those made so far."""

    codec_made: ObservedCodec

    def __init__(self) -> None:
        self.schedulers: list[Scripted] = []

    def create(self, config: ModelConfig, instances: int) -> Any:
        oldest = None if config.sequence_batching is None else config.sequence_batching.oldest
        self.schedulers.append(Scripted(oldest is not None and oldest.preserve_ordering))
        return self.schedulers[-1]

    def codec(self, context: ModelContext) -> SequenceCodec | None:
        tensors = sequence_tensors(context)
        assert tensors is not None
        self.codec_made = ObservedCodec(context.config.name, context.config.max_batch_size > 0, tensors)
        return self.codec_made


@dataclass
class Sent:
    """A batch that a worker is to execute."""

    item: WorkItem
    worker: "HandWorker"


class Hands:
    """A kind of worker that executes nothing by itself: `sent` are its batches, in the order of their dispatch.

    `model` executes them when a test says so. `ended` is what instances hear of sequences, and `log` has a word for
    each end and for each batch.
    """

    name = choice = "hands"

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.ended: list[tuple[int, int | str, str]] = []
        self.log: list[str] = []
        self.workers: dict[str, HandWorker] = {}
        self.model: Callable[[Batch], Answer] = failing

    def worker_for(self, config: ModelConfig, traits: BackendTraits, execute_on: str) -> MakeWorker | None:
        return self._make

    def _make(self, placement: Placement, host: Any) -> Any:
        earlier = self.workers.get(placement.name)
        slot = len(self.workers) if earlier is None else earlier.slot
        worker = self.workers[placement.name] = HandWorker(placement, host, self, slot)
        return worker

    def instance(self, placement: Placement) -> "HandInstance":
        """The instance of a worker."""
        return HandInstance(self.workers[placement.name].slot, self)


class HandWorker(InstanceWorker[Any]):
    """A worker on the event loop's thread, whose batches a test executes one by one."""

    def __init__(self, placement: Placement, host: Any, hands: Hands, slot: int) -> None:
        super().__init__(placement, host)
        self.slot = slot
        self._hands = hands

    def begin(self) -> None:
        self.started.set_result(self.host.make_instance())

    def execute(self, item: Any) -> None:
        self.in_flight[item] = None
        self._hands.log.append("batch")
        self._hands.sent.append(Sent(item, self))

    def instruct(self, instruction: Callable[[Instance], None]) -> None:
        instruction(self.started.result())

    def stop(self) -> None:
        self.host.close_instance(self.started.result())
        self.ended.set_result(None)

    def answer(self, item: Any) -> None:
        """Execute a batch and hand it back."""
        executed: list[Any] = []
        self.host.execute(self.started.result(), item, executed.append)
        assert executed == [item]
        self.arrived(item)

    def die(self, reason: str) -> None:
        """End with all batches."""
        self._hands.sent[:] = [each for each in self._hands.sent if each.worker is not self]
        self.fail_in_flight(self.host.report_death(SystemExit(reason)))
        self.stop()


class HandInstance:
    """Executes what a test says, and notes which sequences are over."""

    def __init__(self, slot: int, hands: Hands) -> None:
        self._slot = slot
        self._hands = hands

    def execute(self, batch: Batch) -> Answer:
        return self._hands.model(batch)

    def sequence_ended(self, correlation_id: int | str, reason: SequenceEndReason) -> None:
        self._hands.log.append("sequence_ended")
        self._hands.ended.append((self._slot, correlation_id, str(reason)))

    def close(self) -> None:
        return None


class ModelOfSequences(SteeredModel):
    """A model whose outputs are those of its configuration, or whatever it likes."""

    def __init__(self, backend: Steered, declares_outputs: bool) -> None:
        super().__init__(backend)
        self.declares_outputs = declares_outputs


class Parts:
    """The plugin with the scheduler and the workers."""

    def __init__(self, batching: ScriptedBatching, hands: Hands) -> None:
        self._batching = batching
        self._hands = hands

    @hookimpl
    def naiad_schedulers(self) -> Sequence[SchedulerFactory]:
        return [self._batching]

    @hookimpl
    def naiad_workers(self, settings: object, runner: object) -> Sequence[WorkerKind]:
        return [self._hands]


@asynccontextmanager
async def driven_sequences(
    root: Path, config: str = "", instances: int = 1, strict: bool = True
) -> "AsyncIterator[DrivenSequences]":
    """A server of the model `m` with that many instances; `strict` holds its outputs against its configuration."""
    batching, hands = ScriptedBatching(), Hands()
    text = config or config_of()
    group = f"instance_group {{ count: {instances} kind: KIND_CPU }}"
    write_model(root, "m", f"{text} {group}")
    backend = Steered(load=lambda context: ModelOfSequences(backend, strict), instantiate=hands.instance)
    options = {"model_control_mode": "explicit", "load_model": ("m",), "exit_timeout_secs": 1, "exit_on_error": True}
    async with running(root, backend, Parts(batching, hands), **options) as server:
        try:
            yield DrivenSequences(server, batching, hands, "max_batch_size: 0" not in text)
        finally:
            with passing_time():  # requests and sequences that are left are waited for
                await server.stop()


class DrivenSequences:
    """`sent` are the batches that execute, `outcomes` what each request was delivered, `ended` what instances hear."""

    def __init__(self, server: Server, batching: ScriptedBatching, hands: Hands, has_rows: bool) -> None:
        self.server = server
        self.sent, self.ended, self.log = hands.sent, hands.ended, hands.log
        self.schedulers = batching.schedulers
        self.sequences = batching.codec_made.opened
        self.outcomes: dict[str, list[Outcome]] = defaultdict(list)
        self._hands = hands
        self._has_rows = has_rows

    @property
    def scheduler(self) -> Scripted:
        return self.schedulers[-1]

    @property
    def report(self) -> VersionReport:
        """What the server says of the version."""
        (report,) = self.server.version_reports()
        return report

    @property
    def outstanding(self) -> int:
        """How many requests wait, execute or stream."""
        return self.report.outstanding

    @property
    def live(self) -> int:
        """How many sequences live in instances."""
        counts = self.report.sequences
        assert counts is not None
        return counts.live

    @property
    def statistics(self) -> ModelStatistics:
        """The counters of the version."""
        (statistics,) = self.server.statistics("m")
        return statistics

    def request(self, name: str, value: int = 0, who: int | str = 7, **fields: Any) -> Request:
        """A request whose X is [[value]]."""
        tensor = Tensor.of("X", np.full((1, 1) if self._has_rows else (1,), value, dtype=np.int32))
        return Request("m", {"X": tensor}, id=name, correlation_id=who, **fields)

    def submit(self, name: str, value: int = 0, who: int | str = 7, **fields: Any) -> SubmittedRequest:
        """Submit such a request; its ticket is the number of the submission, from 1 up."""
        request = self.request(name, value, who, **fields)
        return self.server.submit(request, self.outcomes[name].append, streams=True)

    async def decide(self, *rows: Row, slot: int = 0, ended: Sequence[SequenceEnd] = ()) -> None:
        """Let the scheduler send these rows now."""
        tickets = tuple(row.ticket for row in rows if row.ticket)
        dispatches = (Dispatch(slot, tickets, "requested", rows),) if tickets else ()
        await self.follow(Decision(dispatches, ended=tuple(ended)))

    async def follow(self, decision: Decision) -> None:
        """Let the scheduler decide that now, which a request has come to before."""
        await turns()
        self.scheduler.next = [decision]
        await jump(WAKE_SECONDS)
        assert not any(each.next for each in self.schedulers), "the scheduler was not asked for a decision"

    def batch(self, index: int = 0) -> Batch:
        """A batch that executes."""
        return self.sent[index].item.batch

    def answer(self, model: Callable[[Batch], Answer], index: int = 0) -> None:
        """Let the model execute a batch."""
        sent = self.sent.pop(index)
        self._hands.model = model
        sent.worker.answer(sent.item)
        self._hands.model = failing

    def die(self, reason: str, slot: int = 0) -> None:
        """Let an instance die with its batches."""
        list(self._hands.workers.values())[slot].die(reason)

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

    def is_open(self, who: int | str) -> bool:
        """Whether a request that carries on that sequence would be kept here."""
        return self.sequences.keeps(Request("m", {}, correlation_id=who))

    async def unload(self) -> None:
        """Take the model out of service: its instances are closed when no request is there and none is expected."""
        await self.server.unload("m")
        await turns()

    @property
    def is_closed(self) -> bool:
        """Whether every instance was closed."""
        return all(worker.ended.done() for worker in self._hands.workers.values())


Drive = Callable[..., Awaitable[DrivenSequences]]
"""Starts a server: see the fixture `drive`."""


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
