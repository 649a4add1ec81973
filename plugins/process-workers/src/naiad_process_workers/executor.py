"""Executes the batches of one instance in its process: reads a work link, and answers on it."""

import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic_ns, perf_counter
from typing import Any, NoReturn

import numpy as np

from naiad.backend import Answer, Batch, Instance
from naiad.errors import InternalError
from naiad.types import Request
from naiad_config.user_code import from_user_code
from naiad_kit.busy_wait import BusyWait
from naiad_kit.sequences import SequenceEndReason, notify_end
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.connection import Connection, Memory
from naiad_process_workers.frames import Frame, LinkBrokenError, LinkClosedError
from naiad_process_workers.messages import MANY_STRINGS, Kind, batch_in, encoded_answer
from naiad_process_workers.remote_errors import put_failure
from naiad_process_workers.remote_senders import RemoteSender, SenderState

_logger = logging.getLogger("naiad.model")

SECONDS_FOR_BATCHES = 500e-6
"""The most to wait busily for the next batch after a request that came alone."""


@dataclass(slots=True, eq=False)
class Executions:
    """The executions of a process, by the numbers that the server gave them; for any thread."""

    memory: Memory = field(default_factory=partial(Memory, writable=True))
    model_name: str = ""
    layout: Any = None
    requests: dict[int, Sequence[Request]] = field(default_factory=dict)
    senders: dict[tuple[int, int], SenderState] = field(default_factory=dict)
    cancelled_early: dict[int, set[int]] = field(default_factory=dict)
    executing: set[int] = field(default_factory=set)

    def indices(self, requests: Sequence[Request]) -> tuple[int, list[int]]:
        """The number of the execution of these requests, and their indices in it; (0, []) when it is over."""
        identities = set(map(id, requests))
        for number, own in list(self.requests.items()):
            indices = [index for index, each in enumerate(own) if id(each) in identities]
            if indices:
                return number, indices
        return 0, []

    def cancel(self, number: int, index: int) -> None:
        """Cancel a request; that of a batch that has not come is cancelled when it does."""
        requests = self.requests.get(number)
        if requests is None:
            self.cancelled_early.setdefault(number, set()).add(index)  # or the batch is over
            if len(self.cancelled_early) > _MOST_EARLY:
                del self.cancelled_early[next(iter(self.cancelled_early))]
            requests = self.requests.get(number)  # the batch may have come meanwhile, on the thread that executes it
            if requests is None or requests[index].cancelled:
                return
        _cancel(requests[index])
        self.make_room(number, index)

    def make_room(self, number: int, index: int) -> None:
        """Let a sender send one more response."""
        sender = self.senders.get((number, index))
        if sender is not None:
            sender.make_room()

    def begin(self, number: int, requests: Sequence[Request]) -> None:
        """The requests of a batch are about to be executed."""
        self.executing.add(number)
        self.requests[number] = requests
        if self.cancelled_early:
            for index in tuple(self.cancelled_early.pop(number, ())):  # `cancel` may add one, which it cancels itself
                _cancel(requests[index])

    def sender_ended(self, number: int, index: int) -> None:
        """A sender has sent its last response, or was dropped."""
        self.senders.pop((number, index), None)
        self._forget(number)

    def end(self, number: int, streams: bool) -> None:
        """A batch was executed; if it `streams`, its requests stay until its senders have ended."""
        self.executing.discard(number)
        if streams:
            self._forget(number)
        else:
            self.requests.pop(number, None)

    def _forget(self, number: int) -> None:
        """Drop the requests of a batch that was executed and has no senders."""
        if number not in self.executing and not any(each == number for each, _ in list(self.senders)):
            self.requests.pop(number, None)


_MOST_EARLY = 1024

_Answer = tuple[int, int, bytes, Sequence[np.ndarray]]
"""The arguments of `Connection.send`."""


class Executor:
    """One instance behind one work link. `ends` ends the process after SystemExit or KeyboardInterrupt of the model."""

    def __init__(
        self, work: Connection, executions: Executions, ends: Callable[[Connection, BaseException], NoReturn]
    ) -> None:
        self.work = work
        self.instance: Instance | None = None
        self.name = ""
        self._executions = executions
        self._ends = ends
        self._alone = False  # the latest request came alone
        self._busy_wait = BusyWait(SECONDS_FOR_BATCHES)

    def next(self) -> list[Frame]:
        """The next frames, perhaps none; after a request that came alone waits busily at first where that pays."""
        if not self._alone:
            return self.work.receive()
        frames = self.work.receive(wait=False)
        if frames:
            return frames
        busy_wait, since = self._busy_wait, perf_counter()
        if busy_wait.pays:
            until = since + busy_wait.seconds
            while not frames and perf_counter() < until:
                os.sched_yield()
                frames = self.work.receive(wait=False)
        frames = frames or self.work.receive()
        busy_wait.ended(perf_counter() - since)
        return frames

    def take(self, frame: Frame) -> None:
        """Do what a frame says that is for the instance. Raises LinkBrokenError for another."""
        kind = frame.kind
        if kind in (Kind.EXECUTE, Kind.EXECUTE_ALONE):
            self._alone = kind == Kind.EXECUTE_ALONE
            answer = self._execute(frame)
            if answer is not None:
                self.work.send(*answer)
        elif kind == Kind.SEQUENCE_ENDED:
            correlation_id, reason = Decoder(frame.body, self.work.memory.read).value()
            if self.instance is not None:
                notify_end(correlation_id, SequenceEndReason(reason), self.instance)
        else:
            raise LinkBrokenError(f"a frame of kind {kind}")

    def close(self) -> None:
        """Close the instance; what it raises is logged."""
        try:
            if self.instance is not None:
                self.instance.close()
        except BaseException as error:
            _logger.error("closing instance '%s' failed", self.name, exc_info=from_user_code(error))

    def failure(self, error: BaseException) -> bytes:
        """The body of a frame with that error."""
        encoder = Encoder(self.work)
        put_failure(encoder, error)
        return encoder.body()

    def _execute(self, frame: Frame) -> "_Answer | None":
        """What answers a batch; None for one that is answered later. What it held is free then."""
        number, instance, executions = frame.number, self.instance, self._executions
        if instance is None:
            raise LinkBrokenError("there is no instance")
        open_sender = partial(self._open_sender, number)
        batch = batch_in(
            Decoder(frame.body, self.work.memory.read), executions.model_name, open_sender, executions.layout, number
        )
        executions.begin(number, batch.requests)
        try:
            if batch.trace is None:
                answer = instance.execute(batch)
            else:
                with batch.trace.current():
                    answer = instance.execute(batch)
        except Exception as error:  # noqa: BLE001 - a model may raise anything
            return self._failed(number, error)
        if isinstance(answer, Future):
            answer.add_done_callback(partial(self._answer_later, number, batch))
            return None
        return self._answered(number, batch, answer)

    def _answered(self, number: int, batch: Batch, answer: Answer) -> "_Answer":
        try:
            if not batch.infer_done_ns:
                batch.infer_done_ns = monotonic_ns()
            encoder = encoded_answer(self.work, answer, batch)
            self._executions.end(number, batch.streams)
            kind = Kind.ANSWER if encoder.string_bytes < MANY_STRINGS else Kind.STRINGS
            return kind, number, encoder.body(), encoder.kept
        except Exception as error:  # noqa: BLE001 - an answer can be broken in any way
            return self._failed(number, error)

    def _answer_later(self, number: int, batch: Batch, future: "Future[Answer]") -> None:
        try:
            answer = future.result()
        except Exception as error:  # noqa: BLE001 - a model may raise anything
            frame = self._failed(number, error)
        except BaseException as error:  # noqa: BLE001 - SystemExit and the like end the process
            self._ends(self.work, error)
        else:
            frame = self._answered(number, batch, answer)
        with suppress(LinkClosedError):  # the control link ends the process
            self.work.send(*frame)

    def _failed(self, number: int, error: Exception) -> "_Answer":
        self._executions.end(number, streams=False)
        return Kind.FAILED, number, self.failure(error), ()

    def _open_sender(self, number: int, index: int) -> RemoteSender:
        requests = self._executions.requests.get(number)
        if requests is None:
            raise InternalError("the batch was answered before its sender was taken")
        sender = RemoteSender(self.work, number, index, requests[index], self._executions.sender_ended)
        self._executions.senders[number, index] = sender.state
        return sender


def _cancel(request: Request) -> None:
    request.cancelled = True
    if request.on_cancelled is not None:
        try:
            request.on_cancelled()
        except Exception:
            _logger.exception("what a model does about a cancelled request failed")
