"""Conformance check of batch codecs: random histories of sequences, with the codec's own scheduler."""

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from naiad.backend import Answer, Instance, ModelContext, Reply
from naiad.batch import Batch, Sender
from naiad.codec import BatchCodec, Execution, QueueCodec, QueuedRequest, ReplyReader
from naiad.errors import NaiadError, WorkerDiedError
from naiad.scheduler import Dispatch, Scheduler, SchedulerFactory, Ticket
from naiad.server import Outcome
from naiad.types import Request, Response
from naiad_tensors.tensors import Tensor
from naiad_testing.simulation import ContractBroken

__all__ = ["ContractBroken", "check_codec"]

MakeRequest = Callable[[int, bool, bool], Request]
"""Makes a request of the sequence of that correlation id; the bools say whether it starts and ends the sequence."""


def check_codec(
    factory: SchedulerFactory,
    context: ModelContext,
    request: MakeRequest,
    execute: Callable[[Batch], Answer],
    instances: int = 2,
    histories: int = 25,
) -> None:
    """Play random histories of a model version with these instances through the factory's codec and scheduler.

    `execute` is the model, whose NaiadErrors fail a batch. Requests start, continue and end sequences, are cancelled
    while they wait, and are lost with an instance. Every dispatched request must be in exactly one execution, every
    execution must conclude or requeue each of its requests once, with as many outcomes as requests; concluded requests
    keep no `codec_state`; a drained and closed queue has no `live` and no `open` sequence. Raises ContractBroken.
    """
    for seed in range(histories):
        codec = getattr(factory, "codec", lambda _: None)(context)
        if codec is None:
            raise ContractBroken(f"the factory '{factory.name}' has no codec for model '{context.config.name}'")
        chance = random.Random(seed)  # noqa: S311 - a history, not a secret
        history = _History(codec, factory.create(context.config, instances), request, execute, instances)
        for _ in range(60):
            history.step(chance)
        history.finish()


class _Queued:
    """A QueuedRequest of a history."""

    stream: object | None = None

    def __init__(self, request: Request, ticket: Ticket) -> None:
        self.request = request
        self.ticket = ticket
        self.over = False
        self.codec_state: Any = None


class _Responses:
    """A ResponseBuilder that passes outputs on without a check."""

    layout = None
    version = 1
    decoupled = False

    def __init__(self, model: str) -> None:
        self.model = model

    def response(self, reply: Reply, request: Request, size: int) -> Response:
        outputs = {name: Tensor.of(name, value) for name, value in reply.outputs.items()}
        return Response(self.model, self.version, request.id, outputs, reply.parameters)

    def read(self, answer: Answer, batch: Batch) -> Sequence[Outcome | None]:
        return self.read_rows(_replies(answer, batch), batch, [True] * len(batch.requests))

    def read_rows(self, answer: Any, batch: Batch, occupied: Sequence[bool]) -> Sequence[Outcome | None]:
        rows = zip(_replies(answer, batch), batch.requests, batch.sizes, occupied, strict=True)
        return [self._outcome(*row) for row in rows]

    def _outcome(self, reply: Any, request: Request, size: int, occupied: bool) -> Outcome | None:
        if not occupied:
            return None
        return self.response(reply, request, size) if isinstance(reply, Reply) else reply


def _replies(answer: Answer, batch: Batch) -> Sequence[Any]:
    if not isinstance(answer, Mapping):
        return answer
    rows, start = [], 0
    for size in batch.sizes:
        rows.append(Reply({name: value[start : start + size] for name, value in answer.items()}))
        start += size
    return rows


class _History:
    """The CodecQueue of one history, on a virtual clock."""

    def __init__(
        self,
        codec: BatchCodec,
        scheduler: Scheduler,
        request: MakeRequest,
        execute: Callable[[Batch], Answer],
        slots: int,
    ) -> None:
        self.responses = _Responses("m")
        self._codec, self._scheduler = codec, scheduler
        self._request, self._execute = request, execute
        self._queue: QueueCodec = codec.open(self)
        self._now, self._last_id = 0.0, 0
        self._waiting: dict[int, _Queued] = {}
        self._executing: dict[int, deque[Execution]] = {slot: deque() for slot in range(slots)}
        self._started: set[int] = set()

    def step(self, chance: random.Random) -> None:
        """One random event, and the decision that follows."""
        self._now += chance.choice((0.0, 0.0001, 0.01))
        busy = [slot for slot, executions in self._executing.items() if executions]
        event = chance.random()
        if event < 0.5:
            self._arrive_next(chance)
        elif event < 0.55 and self._waiting:
            self._withdraw(chance.choice(list(self._waiting.values())))
        elif event < 0.6 and busy:
            self._lose(chance.choice(busy))
        elif busy:
            self._complete(chance.choice(busy))
        self._decide()

    def finish(self) -> None:
        """Execute and time out what is open, then close the queue."""
        for _ in range(1000):
            busy = [slot for slot, executions in self._executing.items() if executions]
            wake_at = self._decide()
            if busy:
                self._complete(busy[0])
            elif self._waiting and wake_at is not None:
                self._now = max(self._now, wake_at)
            elif not any(self._executing.values()):
                break
        self._require(not self._waiting, f"requests wait for ever: {list(self._waiting)}")
        self._queue.end_all(True)
        self._require(self._queue.live == 0, f"{self._queue.live} sequences are live after the last one has ended")
        self._require(self._queue.open == 0, f"{self._queue.open} sequences are open after the last one has ended")

    def sender(self, request: QueuedRequest, slot: int, replies: ReplyReader) -> Sender:
        """Refused: these histories have no streams."""
        raise ContractBroken(f"the codec took the sender of request {request.ticket.id}, which the model has not")

    def requeue(self, request: QueuedRequest) -> NaiadError | None:
        """Queue the request again, with a new ticket."""
        if not isinstance(request, _Queued):
            raise ContractBroken("it requeues a request that is not of its queue")
        request.ticket = replace(request.ticket, id=self._next_id(), arrival=self._now, continues=request.ticket.id)
        return self._arrive(request)

    def instruct(self, slot: int, member: str, instruction: Callable[[Instance], None]) -> None:
        """Note nothing: there are no instances."""
        self._require(slot in self._executing, f"it instructs instance {slot}, which does not exist")

    def recount(self) -> None:
        """Note nothing: nothing drains before the end."""

    def _arrive_next(self, chance: random.Random) -> None:
        sequence = chance.randint(1, 4)
        start = sequence not in self._started or chance.random() < 0.1
        end = chance.random() < 0.3
        (self._started.discard if end else self._started.add)(sequence)
        ticket = Ticket(self._next_id(), self._now, sequence_id=sequence, sequence_start=start, sequence_end=end)
        self._arrive(_Queued(self._request(sequence, start, end), ticket))

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _arrive(self, queued: _Queued) -> NaiadError | None:
        refused = self._scheduler.arrive(queued.ticket)
        if refused is not None:
            queued.over = True
            return NaiadError(refused.detail or str(refused.reason))
        self._queue.arrived(queued.ticket)
        self._waiting[queued.ticket.id] = queued
        return None

    def _withdraw(self, queued: _Queued, settled: bool = False) -> None:
        queued.over = True
        self._queue.withdrawn(queued)
        del self._waiting[queued.ticket.id]
        self._conclude(queued)
        if not settled:
            self._scheduler.settle((queued.ticket.id,), self._now)

    def _decide(self) -> float | None:
        idle = tuple(slot for slot, executions in self._executing.items() if not executions)
        decision = self._scheduler.decide(self._now, idle)
        if decision.ended:
            self._queue.ended(decision.ended)
        for dispatch in decision.dispatches:
            self._dispatch(dispatch)
        for drop in decision.drops:
            for ticket in drop.tickets:
                self._withdraw(self._waiting[ticket], settled=True)
        return decision.wake_at

    def _dispatch(self, dispatch: Dispatch) -> None:
        requests = [self._waiting.pop(ticket) for ticket in dispatch.tickets]
        executions = list(self._queue.build(dispatch, requests))
        if not executions:
            sizes = [each.ticket.batch_size for each in requests]
            executions = [Execution(requests, Batch([each.request for each in requests], sizes))]
        built = [each for execution in executions for each in execution.requests]
        if sorted(map(id, built)) != sorted(map(id, requests)):
            self._fail(f"the executions of the tickets {list(dispatch.tickets)} do not have each request once")
        self._executing[dispatch.instance].extend(executions)

    def _complete(self, slot: int, error: NaiadError | None = None) -> None:
        execution = self._executing[slot].popleft()
        tickets = [each.ticket.id for each in execution.requests]
        outcomes: Sequence[Any] = ()
        try:
            if error is None:
                answer = self._execute(execution.batch)
                outcomes = self._codec.read(answer, execution.batch, self.responses)
                count = len(execution.batch.requests)
                self._require(len(outcomes) == count, f"it read {len(outcomes)} outcomes for {count} requests")
        except NaiadError as failure:
            error = failure
        completion = self._queue.completed(execution.batch, outcomes, error)
        concluded, requeued = list(execution.requests), list[QueuedRequest]()
        if completion is not None:
            concluded, requeued = list(completion.requests), list(completion.requeued)
            self._require(len(concluded) == len(completion.outcomes), "a completion lacks outcomes for its requests")
        if sorted(map(id, concluded + requeued)) != sorted(map(id, execution.requests)):
            self._fail(f"a completion does not have each request of the execution once; its tickets are {tickets}")
        for each in concluded:
            self._conclude(each)
        self._scheduler.settle(tickets, self._now)

    def _lose(self, slot: int) -> None:
        lost = getattr(self._scheduler, "lost", None)
        if lost is not None:
            lost(slot, self._now)
        self._queue.lost(slot)
        while self._executing[slot]:
            self._complete(slot, WorkerDiedError("the instance has died"))

    def _conclude(self, queued: QueuedRequest) -> None:
        self._require(queued.codec_state is None, f"request {queued.ticket.id} is over and keeps its codec_state")

    def _require(self, holds: bool, complaint: str) -> None:
        if not holds:
            self._fail(complaint)

    def _fail(self, complaint: str) -> NoReturn:
        raise ContractBroken(f"{type(self._queue).__name__}: {complaint}")
