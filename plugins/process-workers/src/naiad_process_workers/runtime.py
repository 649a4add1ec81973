"""The process of a model: loads it with its backend, makes its instances, and ends with the server.

The main thread reads the first work link, and executes for the instance of the process. Each instance of several in one
process has a work link and a thread of its own. One more thread reads the control link, for what must not wait for an
execution: cancellation, room for responses, readiness, and what the server's services answer.
"""

import functools
import importlib
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from naiad.backend import Backend, MemoryUsage, Model, ModelContext, Placement
from naiad.errors import InternalError
from naiad_config import ModelInstanceGroup
from naiad_config.text import parse_text
from naiad_config.text_writer import to_text
from naiad_config.user_code import describe_failure, from_user_code
from naiad_kit.calls import ModelCallService
from naiad_kit.metrics import MetricsApi
from naiad_kit.own_process import enter_own_process
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.connection import ARENA, Connection
from naiad_process_workers.executor import Executions, Executor
from naiad_process_workers.frames import Frame, LinkClosedError
from naiad_process_workers.messages import ENDED_BY_MODEL, LINK_LOST, Kind
from naiad_process_workers.priority import LoadPriority, is_large, lower_for_good
from naiad_process_workers.remote_errors import put_failure
from naiad_process_workers.remote_services import Caller, RemoteCalls, RemoteLog, RemoteMetrics
from naiad_tensors.ragged import layout_of

_logger = logging.getLogger("naiad.model")


class Runtime:
    """The model and its instances, behind their connections to the server."""

    def __init__(self, work: int, control: int) -> None:
        enter_own_process()
        self._priority: LoadPriority | None = None
        self._executions = Executions()
        memory = self._memory = self._executions.memory
        self._control = Connection(socket.socket(fileno=control), memory, (ARENA, Kind.ATTACH))
        self._main = Executor(Connection(socket.socket(fileno=work), memory), self._executions, _die)
        self._executors = {0: self._main}
        self._caller = Caller(self._control, self._executions.indices)
        self._backend: Backend | None = None
        self._model: Model | None = None
        self._context: ModelContext | None = None
        self._steps: dict[int, Callable[[Executor, Decoder], Any]] = {
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
        with suppress(LinkClosedError):  # which reading it says, too
            self._main.work.send(Kind.HELLO)
        self._serve(self._main)
        _exit(0)

    def _serve(self, executor: Executor) -> None:
        """Read a work link until its CLOSE."""
        try:
            while True:
                for frame in executor.next():
                    if frame.kind in self._steps:
                        executor.work.send(*self._step(executor, frame))
                    elif frame.kind == Kind.CLOSE:
                        self._close(executor, frame.number)
                        return
                    else:
                        executor.take(frame)
        except LinkClosedError:
            os._exit(LINK_LOST)
        except BaseException as error:  # noqa: BLE001 - a model may raise SystemExit, and the link may be broken
            _die(executor.work, error)

    def _serve_attached(self, index: int, executor: Executor) -> None:
        """Read a further work link until its CLOSE, and close it."""
        self._serve(executor)
        del self._executors[index]
        executor.work.close()

    def _leave_links(self, log: RemoteLog) -> None:
        """In the child of a fork: the links are those of this process alone, which the server could not see end."""
        logging.getLogger().removeHandler(log)
        for executor in self._executors.values():
            executor.work.socket.close()
        self._control.socket.close()

    def _step(self, executor: Executor, frame: Frame) -> tuple[int, int, bytes]:
        """One step of a load, which may fail."""
        encoder = Encoder(executor.work)
        try:
            encoder.value(self._steps[frame.kind](executor, Decoder(frame.body, self._memory.read)))
            return Kind.DONE, frame.number, encoder.body()
        except Exception as error:  # noqa: BLE001 - a model may raise anything
            return Kind.FAILED, frame.number, executor.failure(error)

    def _complete(self, executor: Executor, decoder: Decoder) -> str:
        context = self._context_in(decoder)
        return to_text(self._backend_of(decoder).complete(context))

    def _load(self, executor: Executor, decoder: Decoder) -> bool:
        context = self._context_in(decoder)
        others = {name: each for name, each in context.config.parameters.items() if name != "EXECUTION_ENV_PATH"}
        config = replace(context.config, parameters=others)  # the backend would warn that it has no use for it
        context = self._context = replace(context, config=config)
        model = self._model = self._backend_of(decoder).load(context)
        self._executions.model_name = context.config.name
        self._executions.layout = layout_of(context.config)
        return bool(getattr(model, "declares_outputs", True))

    def _instantiate(self, executor: Executor, decoder: Decoder) -> Sequence[Any]:
        if self._model is None or self._context is None:
            raise InternalError("the model was not loaded before its instance")
        name, kind, device, index = decoder.value()
        groups = self._context.config.instance_group
        group = groups[index] if index < len(groups) else ModelInstanceGroup()
        instance = executor.instance = self._model.instantiate(Placement(name, kind, device, group))
        executor.name = name
        if self._priority is not None:
            self._priority.end()
        concurrency = max(1, int(getattr(instance, "concurrency", 1)))
        members = concurrency, hasattr(instance, "ready"), hasattr(instance, "sequence_ended")
        return members, _memory_usage(self._model)

    def _backend_of(self, decoder: Decoder) -> Backend:
        if self._backend is None:
            module, name, directory = decoder.value()
            source = importlib.import_module(module)
            if directory:
                backends: Sequence[Backend] = [getattr(source, name)(Path(directory))]
            else:
                backends = [backend for backend in source.naiad_backends() if backend.traits.name == name]
            (self._backend,) = backends
        return self._backend

    def _context_in(self, decoder: Decoder) -> ModelContext:
        config, version, model, folder, settings, capability, metrics = decoder.value()
        parts: dict[str, Any] = {ModelCallService.name: RemoteCalls(self._caller)}
        if metrics:
            parts[MetricsApi.name] = RemoteMetrics(self._caller)
        if self._priority is None and is_large(Path(folder)):
            self._priority = LoadPriority()
        return ModelContext(parse_text(config), version, Path(model), Path(folder), settings, capability, parts)

    def _listen(self) -> None:
        try:
            while True:
                for frame in self._control.receive():
                    self._hear(frame)
        except LinkClosedError:
            os._exit(LINK_LOST)
        except BaseException as error:  # noqa: BLE001 - no descriptor or no thread is to be had, for example
            _die(self._main.work, error)

    def _hear(self, frame: Frame) -> None:
        decoder = Decoder(frame.body, self._memory.read)
        if frame.kind == Kind.REPLY:
            self._caller.replied(frame.number, decoder)
        elif frame.kind == Kind.CANCELLED:
            self._executions.cancel(frame.number, decoder.value())
        elif frame.kind == Kind.ROOM:
            self._executions.make_room(frame.number, decoder.value())
        elif frame.kind == Kind.READY:
            self._start("naiad-ready", self._say_ready, frame.number, decoder.value())
        elif frame.kind == Kind.ATTACH:
            (descriptor,) = frame.descriptors
            work = socket.socket(fileno=self._control.claim(descriptor))
            executor = Executor(Connection(work, self._memory), self._executions, _die)
            self._executors[frame.number] = executor
            self._start(f"naiad-instance-{frame.number}", self._serve_attached, frame.number, executor)

    def _start(self, name: str, target: Callable[..., None], *arguments: Any) -> None:
        threading.Thread(target=target, args=arguments, name=name, daemon=True).start()

    def _say_ready(self, number: int, index: int) -> None:
        try:
            reason = str(self._executors[index].instance.ready() or "")  # type: ignore[union-attr]
        except BaseException as error:  # noqa: BLE001 - a model may raise anything
            reason = describe_failure(error)
        encoder = Encoder(self._control)
        encoder.value(reason)
        with suppress(LinkClosedError):
            self._control.send(Kind.READINESS, number, encoder.body())

    def _close(self, executor: Executor, number: int) -> None:
        """Close an instance, and the model with that of the main thread, which the server closes last."""
        executor.close()
        if executor is self._main:
            if self._priority is not None:
                lower_for_good()
            try:
                if self._model is not None:
                    self._model.close()
            except BaseException as error:
                name = self._executions.model_name
                _logger.error("closing model '%s' failed", name, exc_info=from_user_code(error))
        executor.work.send(Kind.DONE, number, Encoder(executor.work).body())


def _memory_usage(model: Model) -> Sequence[Sequence[Any]]:
    """What the model says of its memory: type, device and bytes."""
    try:
        usage: Sequence[MemoryUsage] = getattr(model, "memory_usage", tuple)()
        return [(each.type, each.id, each.byte_size) for each in usage]
    except Exception:
        _logger.exception("reading the memory usage of a model failed")
        return ()


def _die(work: Connection, error: BaseException) -> NoReturn:
    """End the process with the exit code of the error, after the server was sent the error."""
    code = ENDED_BY_MODEL
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    with suppress(Exception):  # the link is closed, or memory has run out
        encoder = Encoder(work)
        put_failure(encoder, error)
        work.send(Kind.DYING, 0, encoder.body())
    _exit(code)


def _exit(code: int) -> NoReturn:
    """End at once: threads and exit functions of the model's could hold the process up."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)
