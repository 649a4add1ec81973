"""The process of an instance: loads the model with its backend, executes batches, and ends with the server.

The main thread is the instance's: it alone reads the work link and executes. A second thread reads the control link,
for what must not wait for an execution: cancellation, room for responses, readiness, and what the server's services
answer.
"""

import functools
import importlib
import logging
import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic_ns, perf_counter
from typing import Any, NoReturn

from naiad.backend import Answer, Backend, Batch, Instance, Model, ModelContext, Placement
from naiad.errors import InternalError, NaiadError
from naiad.foreign_errors import describe_error
from naiad.types import Request
from naiad_config import ModelInstanceGroup
from naiad_config.text import parse_text
from naiad_config.text_writer import to_text
from naiad_kit.calls import ModelCallService
from naiad_kit.metrics import MetricsApi
from naiad_process_workers.busy_wait import BusyWait
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.connection import Connection, LinkClosedError, Memory
from naiad_process_workers.frames import Frame, LinkBrokenError
from naiad_process_workers.messages import (
    ENDED_BY_MODEL,
    LINK_LOST,
    MANY_STRINGS,
    Kind,
    batch_in,
    put_answer,
    put_error,
)
from naiad_process_workers.remote_senders import RemoteSender, SenderState
from naiad_process_workers.remote_services import Caller, RemoteCalls, RemoteLog, RemoteMetrics
from naiad_tensors.ragged import layout_of

_logger = logging.getLogger("naiad.model")


SECONDS_FOR_BATCHES = 250e-6
"""The most to wait busily for the next batch."""


class Runtime:
    """The model and its instance, behind two connections to the server."""

    def __init__(self, work: int, control: int) -> None:
        memory = Memory()
        self._memory = memory
        self._work = Connection(socket.socket(fileno=work), memory)
        self._control = Connection(socket.socket(fileno=control), memory)
        self._caller = Caller(self._control, self._indices)
        self._busy_wait = BusyWait(SECONDS_FOR_BATCHES)
        self._backend: Backend | None = None
        self._model: Model | None = None
        self._instance: Instance | None = None
        self._name = self._model_name = ""
        self._layout: Any = None
        self._context: ModelContext | None = None
        self._requests: dict[int, Sequence[Request]] = {}
        self._senders: dict[tuple[int, int], SenderState] = {}
        self._cancelled_early: set[tuple[int, int]] = set()
        self._steps: dict[int, Callable[[Decoder], Any]] = {
            Kind.COMPLETE: self._complete,
            Kind.LOAD: self._load,
            Kind.INSTANTIATE: self._instantiate,
        }

    def run(self) -> NoReturn:
        """Do what the server says until it says CLOSE, or is gone."""
        root = logging.getLogger()
        log = RemoteLog(self._control)
        root.addHandler(log)
        root.setLevel(logging.DEBUG)
        os.register_at_fork(after_in_child=functools.partial(self._leave_links, log))
        threading.Thread(target=self._listen, name="naiad-control", daemon=True).start()
        try:
            while True:
                for frame in self._next():
                    self._take(frame)
        except (LinkClosedError, LinkBrokenError):
            os._exit(LINK_LOST)
        except BaseException as error:  # noqa: BLE001 - a model that wants to end the process does
            self._die(error)

    def _leave_links(self, log: RemoteLog) -> None:
        """In the child of a fork: the links are those of this process alone, which the server could not see end."""
        logging.getLogger().removeHandler(log)
        self._work.socket.close()
        self._control.socket.close()

    def _next(self) -> list[Frame]:
        """The next frames, perhaps none; waits busily at first where that pays."""
        frames = self._work.receive(wait=False)
        if frames:
            return frames
        busy_wait, since = self._busy_wait, perf_counter()
        if busy_wait.pays:
            until = since + busy_wait.seconds
            while not frames and perf_counter() < until:
                os.sched_yield()
                frames = self._work.receive(wait=False)
        frames = frames or self._work.receive()
        busy_wait.ended(perf_counter() - since)
        return frames

    def _take(self, frame: Frame) -> None:
        kind = frame.kind
        if kind == Kind.EXECUTE:
            answer = self._execute(frame)
            if answer is not None:
                self._work.send(*answer)
        elif kind == Kind.SEQUENCE_ENDED:
            correlation_id, reason = Decoder(frame.body, self._memory.read).value()
            if self._instance is not None:
                self._instance.sequence_ended(correlation_id, reason)  # type: ignore[attr-defined]
        elif kind == Kind.CLOSE:
            self._close(frame.number)
        elif kind in self._steps:
            self._work.send(*self._step(frame))
        else:
            raise LinkBrokenError(f"a frame of kind {kind}")

    def _step(self, frame: Frame) -> tuple[int, int, bytes]:
        """One step of a load, which may fail."""
        encoder = Encoder(self._work)
        try:
            encoder.value(self._steps[frame.kind](Decoder(frame.body, self._memory.read)))
            return Kind.DONE, frame.number, encoder.body()
        except Exception as error:  # noqa: BLE001 - a model may raise anything
            return Kind.FAILED, frame.number, self._error(error)

    def _complete(self, decoder: Decoder) -> str:
        context = self._context_in(decoder)
        return to_text(self._backend_of(decoder).complete(context))

    def _load(self, decoder: Decoder) -> bool:
        context = self._context_in(decoder)
        others = {name: each for name, each in context.config.parameters.items() if name != "EXECUTION_ENV_PATH"}
        config = replace(context.config, parameters=others)  # the backend would warn that it has no use for it
        context = self._context = replace(context, config=config)
        model = self._model = self._backend_of(decoder).load(context)
        self._model_name, self._layout = context.config.name, layout_of(context.config)
        return bool(getattr(model, "declares_outputs", True))

    def _instantiate(self, decoder: Decoder) -> Sequence[Any]:
        if self._model is None or self._context is None:
            raise InternalError("the model was not loaded before its instance")
        name, kind, device, index = decoder.value()
        groups = self._context.config.instance_group
        group = groups[index] if index < len(groups) else ModelInstanceGroup()
        instance = self._instance = self._model.instantiate(Placement(name, kind, device, group))
        self._name = name
        concurrency = max(1, int(getattr(instance, "concurrency", 1)))
        return concurrency, hasattr(instance, "ready"), hasattr(instance, "sequence_ended")

    def _backend_of(self, decoder: Decoder) -> Backend:
        if self._backend is None:
            package, name = decoder.value()
            backends: Sequence[Backend] = importlib.import_module(package).naiad_backends()
            self._backend = next(backend for backend in backends if backend.traits.name == name)
        return self._backend

    def _context_in(self, decoder: Decoder) -> ModelContext:
        config, version, model, folder, settings, capability, metrics = decoder.value()
        parts: dict[str, Any] = {ModelCallService.name: RemoteCalls(self._caller)}
        if metrics:
            parts[MetricsApi.name] = RemoteMetrics(self._caller)
        return ModelContext(parse_text(config), version, Path(model), Path(folder), settings, capability, parts)

    def _execute(self, frame: Frame) -> tuple[int, int, bytes] | None:
        """The frame that answers a batch; None for one that is answered later. What it held is free then."""
        number, instance = frame.number, self._instance
        assert instance is not None  # noqa: S101 - it was made before
        open_sender = functools.partial(self._open_sender, number)
        batch = batch_in(Decoder(frame.body, self._memory.read), self._model_name, open_sender, self._layout)
        self._requests[number] = batch.requests
        if self._cancelled_early:
            self._cancel_early(number, batch)
        try:
            answer = instance.execute(batch)
        except Exception as error:  # noqa: BLE001 - a model may raise anything
            return self._failed(number, error)
        if isinstance(answer, Future):
            answer.add_done_callback(functools.partial(self._answer_later, number, batch))
            return None
        return self._answered(number, batch, answer)

    def _answered(self, number: int, batch: Batch, answer: Answer) -> tuple[int, int, bytes]:
        try:
            if not batch.infer_done_ns:
                batch.infer_done_ns = monotonic_ns()
            encoder = Encoder(self._work)
            put_answer(encoder, answer, batch)
            self._over(number, batch.streams)
            kind = Kind.ANSWER if encoder.string_bytes < MANY_STRINGS else Kind.STRINGS
            return kind, number, encoder.body()
        except Exception as error:  # noqa: BLE001 - an answer can be broken in any way
            return self._failed(number, error)

    def _answer_later(self, number: int, batch: Batch, future: "Future[Answer]") -> None:
        try:
            answer = future.result()
        except Exception as error:  # noqa: BLE001 - a model may raise anything
            frame = self._failed(number, error)
        except BaseException as error:  # noqa: BLE001 - a model that wants to end the process does
            self._die(error)
        else:
            frame = self._answered(number, batch, answer)
        with suppress(LinkClosedError):  # the control link ends the process
            self._work.send(*frame)

    def _failed(self, number: int, error: Exception) -> tuple[int, int, bytes]:
        self._over(number, streams=False)
        return Kind.FAILED, number, self._error(error)

    def _error(self, error: BaseException) -> bytes:
        encoder = Encoder(self._work)
        trace = "" if isinstance(error, NaiadError) else "".join(traceback.format_exception(error))
        put_error(encoder, error, trace.rstrip())
        return encoder.body()

    def _over(self, number: int, streams: bool) -> None:
        if not streams:
            self._requests.pop(number, None)

    def _open_sender(self, number: int, index: int) -> RemoteSender:
        requests = self._requests.get(number)
        if requests is None:
            raise InternalError("the batch was answered before its sender was taken")
        sender = RemoteSender(self._work, number, index, requests[index], self._sender_ended)
        self._senders[number, index] = sender.state
        return sender

    def _sender_ended(self, number: int, index: int) -> None:
        self._senders.pop((number, index), None)
        if not any(each == number for each, _ in list(self._senders)):
            self._requests.pop(number, None)

    def _indices(self, requests: Sequence[Request]) -> tuple[int, list[int]]:
        for number, own in list(self._requests.items()):
            indices = [index for index, each in enumerate(own) if any(each is one for one in requests)]
            if indices:
                return number, indices
        return 0, []

    def _listen(self) -> None:
        try:
            while True:
                for frame in self._control.receive():
                    self._hear(frame)
        except BaseException:  # noqa: BLE001 - the server has ended, or nothing can be read from it any more
            os._exit(LINK_LOST)

    def _hear(self, frame: Frame) -> None:
        decoder = Decoder(frame.body, self._memory.read)
        if frame.kind == Kind.REPLY:
            self._caller.replied(frame.number, decoder)
        elif frame.kind == Kind.CANCELLED:
            self._cancel(frame.number, decoder.value())
        elif frame.kind == Kind.ROOM:
            sender = self._senders.get((frame.number, decoder.value()))
            if sender is not None:
                sender.make_room()
        elif frame.kind == Kind.READY:
            threading.Thread(target=self._say_ready, args=(frame.number,), name="naiad-ready", daemon=True).start()

    def _cancel(self, number: int, index: int) -> None:
        requests = self._requests.get(number)
        if requests is None:
            self._cancelled_early.add((number, index))  # it overtook the batch, or the batch is over
            return
        _cancel(requests[index])
        sender = self._senders.get((number, index))
        if sender is not None:
            sender.make_room()

    def _cancel_early(self, number: int, batch: Batch) -> None:
        for each in list(self._cancelled_early):
            if each[0] == number:
                _cancel(batch.requests[each[1]])
            if each[0] <= number:
                self._cancelled_early.discard(each)

    def _say_ready(self, number: int) -> None:
        try:
            reason = str(self._instance.ready() or "")  # type: ignore[union-attr]
        except BaseException as error:  # noqa: BLE001 - a model may raise anything
            reason = describe_error(error)
        encoder = Encoder(self._control)
        encoder.value(reason)
        with suppress(LinkClosedError):
            self._control.send(Kind.READINESS, number, encoder.body())

    def _close(self, number: int) -> NoReturn:
        for each in (self._instance, self._model):
            try:
                if each is not None:
                    each.close()
            except BaseException:
                _logger.exception("closing instance '%s' failed", self._name)
        self._work.send(Kind.DONE, number, Encoder(self._work).body())
        _exit(0)

    def _die(self, error: BaseException) -> NoReturn:
        """End the process, as the model wants it."""
        code = ENDED_BY_MODEL
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        encoder = Encoder(self._work)
        put_error(encoder, error, "".join(traceback.format_exception(error)).rstrip())
        with suppress(LinkClosedError):
            self._work.send(Kind.DYING, 0, encoder.body())
        _exit(code)


def _cancel(request: Request) -> None:
    request.cancelled = True
    if request.on_cancelled is not None:
        try:
            request.on_cancelled()
        except Exception:
            _logger.exception("what a model does about a cancelled request failed")


def _exit(code: int) -> NoReturn:
    """End at once: threads and exit functions of the model's could hold the process up."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)
