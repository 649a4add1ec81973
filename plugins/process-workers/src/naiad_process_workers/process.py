"""The process of an instance as the server has it: its start, its steps, its end and why it ended."""

import itertools
import json
import logging
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from errno import EAGAIN
from pathlib import Path
from typing import Any

from naiad.backend import ModelContext
from naiad.errors import InternalError, ModelFailedError, NaiadError, WorkerDiedError
from naiad.types import Request
from naiad_config.errors import MORE_PROCESSES, advice_for
from naiad_config.user_code import from_user_code
from naiad_process_workers import bootstrap
from naiad_process_workers.bodies import BodyArenasService, BodyPart
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.connection import Connection, Memory
from naiad_process_workers.frames import Frame, LinkBrokenError, LinkClosedError
from naiad_process_workers.lifeline import lifeline_reader
from naiad_process_workers.memory_groups import MemoryGroup, MemoryGroups
from naiad_process_workers.messages import Kind
from naiad_process_workers.process_ends import ProcessEnds, describe_exit
from naiad_process_workers.remote_errors import error_in
from naiad_process_workers.services import ControlLink

_logger = logging.getLogger("naiad.model")

SECONDS_TO_END = 1.0
"""A process whose link is closed is killed when it has not ended after so long."""

SECONDS_TO_CLOSE = 30.0
"""How long the model may take to close; then its process is killed."""

_NEEDED = "must be Python 3.11 or newer, with numpy"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may use: bytes of memory, and seconds to start and for an execution; 0 is no limit.

    `groups` makes a cgroup for the limit of memory; without it, the bytes are those of address space. `hello` are the
    seconds in which an interpreter of the model's own must say that it serves, where `startup` says nothing.
    """

    memory: int = 0
    startup: float = 0.0
    execution: float = 0.0
    groups: MemoryGroups | None = None
    hello: float = 60.0


@dataclass(frozen=True, slots=True)
class Environment:
    """The interpreter of a process. `path` is its `sys.path`, None for an interpreter with an environment of its own.

    `packages` are the folders of the packages that this one lacks, `variables` its environment variables (() for ours).
    """

    python: str
    path: tuple[str, ...] | None
    packages: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()

    @classmethod
    def own(cls) -> "Environment":
        """The server's own."""
        return cls(sys.executable, tuple(sys.path))


_ends = ProcessEnds()


class ModelProcess:
    """One process, from its start to its end. Its steps block; `kill` and `requests` are for any thread."""

    def __init__(self, context: ModelContext, environment: Environment, limits: Limits) -> None:
        self._name = context.config.name
        self.context = context
        self.limits = limits
        self.requests: dict[int, Sequence[Request]] = {}
        self.numbers = itertools.count(1)
        self.dying = ""
        self.memory_usage: Sequence[tuple[str, int, int]] = ()
        self._killed_because = ""
        self._ending = threading.Lock()
        self._reason: str | None = None
        self._count = 0
        self._memory = Memory()
        self._links: list[socket.socket] = []
        self._group: MemoryGroup | None = None
        if limits.memory and limits.groups is not None:
            self._group = limits.groups.create(limits.memory)
        # an interpreter of the model's own, until it has completed a step
        self._unproven = environment.python if environment.path is None else ""
        work, control = self._start(environment)
        self.work = Connection(work, self._memory)
        requests, process = self.requests, weakref.ref(self)  # the link's thread must not keep a dropped process
        self.control = ControlLink(
            Connection(control, self._memory),
            context,
            lambda number: requests.get(number, ()),
            lambda reason: _kill(process(), reason),
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, or is about to."""
        return self._reason is not None or self._popen.poll() is not None

    def attach(self, index: int) -> Connection:
        """A further work link, for an instance of that index on a thread of its own. Raises ModelFailedError."""
        with _starting(self._name):
            here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.control.attach(index, there)
        except LinkClosedError as error:
            here.close()
            raise ModelFailedError(f"the process of model '{self._name}' ended: {self.end(error)}") from None
        finally:
            there.close()
        self._links.append(here)
        return Connection(here, self._memory)

    def detach(self, work: Connection) -> None:
        """Let the instance of a further work link close, and wait for that."""
        with suppress(LinkClosedError, LinkBrokenError, OSError):  # a timeout, or its warm-up has ended the process
            self._finish(work)
        self._links.remove(work.socket)
        work.close()

    def serve(self, context: ModelContext) -> None:
        """Load this version from now on: its metrics and model calls are those of the process."""
        self.context = context
        self.control.serve(context)
        part = context.parts.get(BodyArenasService.name)
        self._memory.bodies = part.open() if isinstance(part, BodyPart) else None

    def step(self, kind: Kind, *values: Any, work: Connection | None = None) -> Any:
        """Do one step of a load, and wait for what it returns. Raises NaiadError; the process has ended for most."""
        work = work or self.work
        self._count += 1
        encoder = Encoder(work)
        for value in values:
            encoder.value(value)
        limit = self.limits.startup
        work.socket.settimeout(limit or None)
        try:
            if self._unproven:
                self._wait_for_hello(work)
            with suppress(LinkClosedError):  # the process has ended, and may have said why
                work.send(kind, self._count, encoder.body())
            frame = self._next(work, Kind.DONE, Kind.FAILED)
        except TimeoutError:
            self.kill(f"it took longer than {limit:g} s to start (startup_timeout)")
            raise ModelFailedError(f"the process of model '{self._name}' ended: {self.end()}") from None
        except (LinkClosedError, LinkBrokenError) as error:
            raise ModelFailedError(f"the process of model '{self._name}' ended: {self.end(error)}") from None
        finally:
            with suppress(OSError):
                work.socket.settimeout(None)
        self._unproven = ""
        decoder = Decoder(frame.body, self._memory.read)
        if frame.kind == Kind.DONE:
            return decoder.value()
        failure = error_in(decoder)
        raise failure if isinstance(failure, NaiadError) else _load_error(self._name, failure)

    def close(self) -> None:
        """Let the model close, and wait until the process has ended."""
        if self._reason is not None:
            return
        with suppress(LinkClosedError, LinkBrokenError, TimeoutError):
            self._finish(self.work)
        self.end()

    def kill(self, reason: str = "") -> None:
        """End the process at once."""
        self._killed_because = self._killed_because or reason
        self._popen.kill()

    def kill_overdue(self) -> None:
        """End the process, in which an execution takes longer than it may."""
        self.kill(f"an execution took longer than {self.limits.execution:g} s (execution_timeout)")

    def dies(self, frame: Frame) -> None:
        """The process says what ends it."""
        error = error_in(Decoder(frame.body, self._memory.read))
        self.dying = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        _logger.error("the model '%s' ends its process", self._name, exc_info=from_user_code(error))

    def end(self, error: Exception | None = None) -> str:
        """Free what there is of a process that has ended or is about to; why it ended. Harmless when repeated."""
        with self._ending:
            if self._reason is None:
                reason = self._ended_because()
                if isinstance(error, LinkBrokenError):
                    reason = f"it sent what cannot be read: {error}"
                self._reason = reason
                if self._group is not None:
                    self._group.close()
                self.control.close()
                self.work.close()
                self._memory.close()
            return self._reason

    def __del__(self) -> None:
        if hasattr(self, "_popen"):
            self.kill()
            with suppress(AttributeError):  # the thread of its control link did not start
                self.end()

    def _finish(self, work: Connection) -> None:
        work.write_later(None)
        work.socket.settimeout(SECONDS_TO_CLOSE)
        work.send(Kind.CLOSE, 0, Encoder(work).body())
        self._next(work, Kind.DONE)

    def _wait_for_hello(self, work: Connection) -> None:
        """Wait until an interpreter of the model's own serves. Raises TimeoutError for another program."""
        limits = self.limits
        work.socket.settimeout(limits.startup or limits.hello)
        try:
            self._next(work, Kind.HELLO)
        except TimeoutError:
            if not limits.startup:
                self.kill(f"it did not serve within {limits.hello:g} s; '{self._unproven}' {_NEEDED}")
            raise
        work.socket.settimeout(limits.startup or None)

    def _next(self, work: Connection, *kinds: Kind) -> Frame:
        """The next frame of these kinds; what the instance says otherwise is of no interest any more."""
        while True:
            for frame in work.receive():
                if frame.kind == Kind.DYING:
                    self.dies(frame)
                if frame.kind in kinds:
                    return frame

    def _start(self, environment: Environment) -> tuple[socket.socket, socket.socket]:
        """Start the process: the server's ends of the work link and of the control link. Raises InternalError."""
        with _starting(self._name), ExitStack() as failure, ExitStack() as links:
            if self._group is not None:
                failure.callback(self._group.close)
            work, work_there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            failure.callback(work.close)
            links.callback(work_there.close)
            control, control_there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            failure.callback(control.close)
            links.callback(control_there.close)
            self._popen = self._spawn(environment, work_there.fileno(), control_there.fileno())
            failure.callback(self._popen.kill)
            if self._group is not None:
                self._group.add(self._popen.pid)
            self._links += [work, control]
            _ends.watch(self._popen.pid, self._links)
            failure.pop_all()
        return work, control

    def _spawn(self, environment: Environment, work: int, control: int) -> "subprocess.Popen[bytes]":
        lifeline = lifeline_reader()
        setup = {
            "path": environment.path,
            "packages": dict(environment.packages),
            "work": work,
            "control": control,
            "lifeline": lifeline,
            "memory": 0 if self._group is not None else self.limits.memory,
        }
        return subprocess.Popen(  # noqa: S603 - the interpreter is the server's or the configuration's
            [environment.python, str(Path(bootstrap.__file__)), json.dumps(setup)],
            stdin=subprocess.DEVNULL,
            pass_fds=(work, control, lifeline),
            start_new_session=True,
            env=dict(environment.variables) or None,
        )

    def _ended_because(self) -> str:
        try:
            code = self._popen.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.kill("it closed its link to the server")
            code = self._popen.wait()
        if self._killed_because:
            return self._killed_because
        if self._group is not None and self._group.has_killed:
            return f"it used more memory than its memory_limit of {self.limits.memory} bytes"
        if self.dying:
            return self.dying
        reason = describe_exit(code, 0 if self._group is not None else self.limits.memory)
        if code <= 0 or not self._unproven:
            return reason
        return f"{reason}, before it served; '{self._unproven}' {_NEEDED}"


def _kill(process: ModelProcess | None, reason: str) -> None:
    if process is not None:
        process.kill(reason)


@contextmanager
def _starting(model: str) -> Iterator[None]:
    """Turn an OSError in the block into an InternalError, which names the limit of the system that is reached."""
    try:
        yield
    except OSError as error:
        advice = MORE_PROCESSES if error.errno == EAGAIN else advice_for(error)
        reason = f"{error.strerror}; {advice}" if advice else str(error)
        raise InternalError(f"a process for model '{model}' cannot be started: {reason}") from error


def _load_error(model: str, error: Exception) -> ModelFailedError:
    failed = ModelFailedError(f"loading model '{model}' failed: {type(error).__name__}: {error}")
    failed.__cause__ = error
    _logger.error("loading model '%s' failed", model, exc_info=error)
    return failed


def held(name: str, reason: str) -> WorkerDiedError:
    """The error of a request that a process held when it ended."""
    return WorkerDiedError(
        f"the worker of instance '{name}' died while it held the request: {reason}; it is being replaced"
    )
