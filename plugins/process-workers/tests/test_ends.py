"""The link with an end of the process at every byte of a conversation: nothing hangs, and nothing stays."""

import gc
import itertools
import os
import socket
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad.backend import Batch, ModelContext, Reply
from naiad.errors import NaiadError, WorkerDiedError
from naiad.types import Request
from naiad_config.text import parse_text
from naiad_kit.calls import ModelCallService
from naiad_kit.senders import NullSender
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.connection import ARENA, RETIRED, Connection, Memory
from naiad_process_workers.frames import LinkBrokenError, LinkClosedError, frame_bytes
from naiad_process_workers.instance import ProcessInstance
from naiad_process_workers.messages import Kind, batch_in, put_answer, put_reply
from naiad_process_workers.process import Limits
from naiad_process_workers.remote_services import Caller
from naiad_process_workers.services import ControlLink
from naiad_tensors.tensors import Tensor

from .pair import connected, is_free


class FakeControl:
    """Counts what goes to the process apart from batches."""

    def __init__(self) -> None:
        self.rooms = 0

    def room(self, number: int, index: int) -> None:
        self.rooms += 1

    def cancelled(self, number: int, index: int) -> None:
        raise AssertionError


class FakeProcess:
    """The server's side of a process that only its socket is there of."""

    def __init__(self, link: socket.socket) -> None:
        self.memory = Memory()
        self.work = Connection(link, self.memory)
        self.control = FakeControl()
        self.requests: dict[int, Sequence[Request]] = {}
        self.numbers = itertools.count(1)
        self.limits = Limits()

    def end(self, error: Exception | None = None) -> str:
        self.work.close()
        self.memory.close()
        return "the test ended it"


class CollectingSender:
    """Keeps what the instance sends."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, bool]] = []

    def send(self, reply: Any, final: bool = False) -> bool:
        raise AssertionError

    def post(self, reply: Any, final: bool = False) -> None:
        self.sent.append((reply, final))

    def is_cancelled(self) -> bool:
        return False


def instance_over(link: socket.socket) -> ProcessInstance:
    process: Any = FakeProcess(link)
    return ProcessInstance("m_0", process, process.work, 0, ["y"], 1, False, False)


def conversation(number: int = 1) -> tuple[bytes, list[int], list[int]]:
    """What a process writes for one batch of two requests, its descriptors, and where its frames end.

    The first request is answered through its sender, with a payload in an arena; the second by the answer.
    """
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    connection = Connection(here, Memory())
    array = np.arange(2000, dtype=np.float32)

    def body(*values: Any, reply: Any = None, answer: Any = None) -> bytes:
        encoder = Encoder(connection)
        for value in values:
            encoder.value(value)
        if reply is not None:
            put_reply(encoder, reply)
        if answer is not None:
            put_answer(encoder, answer, Batch([], []))
        return encoder.body()

    connection.put(Kind.OPENED, number, body(0))
    connection.put(Kind.RESPONSE, number, body([0, False], reply=Reply({"y": array})))
    connection.put(Kind.ANSWER, number, body(answer=[None, Reply({"y": array})]))
    connection.put(Kind.RESPONSE, number, body([0, True], reply=Reply({})))
    buffers, descriptors = connection._writer.take()
    content = b"".join(buffers)
    descriptors = [os.dup(each) for each in descriptors]
    connection.close()
    connection.memory.close()
    there.close()
    boundaries = [0]
    for buffer in buffers:
        boundaries.append(boundaries[-1] + len(buffer))
    return content, descriptors, boundaries


def executed(content: bytes, descriptors: list[int]) -> tuple[Any, CollectingSender]:
    """What an instance whose process writes that, and ends, answers or raises; and what the sender sent."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    instance = instance_over(here)
    if content:
        socket.send_fds(there, [content], descriptors)
    there.shutdown(socket.SHUT_WR)
    sender = CollectingSender()
    requests = [Request("m", {"x": Tensor.of("x", np.zeros(3000, np.float32))}) for _ in range(2)]
    try:
        return instance.execute(Batch(requests, [1, 1], lambda index: sender)), sender
    except NaiadError as error:
        return error, sender
    finally:
        there.close()
        instance.process.end()


def descriptors_and_memory() -> tuple[int, int]:
    gc.collect()
    maps = Path("/proc/self/maps").read_text()
    return len(list(Path("/proc/self/fd").iterdir())), maps.count("naiad-arena")


def test_a_whole_conversation_is_an_answer() -> None:
    content, descriptors, _ = conversation()

    answer, sender = executed(content, descriptors)

    assert answer[0] is None
    assert answer[1].outputs["y"].tolist() == list(range(2000))
    assert [final for _, final in sender.sent] == [False, True]
    for each in descriptors:
        os.close(each)


@pytest.mark.parametrize("within", [0, 1, 9, 17])
def test_an_end_at_every_boundary_fails_what_was_held(within: int) -> None:
    content, descriptors, boundaries = conversation()
    before = descriptors_and_memory()

    for boundary in boundaries[:-1]:
        result, sender = executed(content[: boundary + within], descriptors)
        assert isinstance(result, WorkerDiedError), boundary
        assert "the test ended it" in str(result)
        if sender.sent:
            last, final = sender.sent[-1]
            assert final
            assert isinstance(last, WorkerDiedError)
        result = sender = last = None

    assert descriptors_and_memory() == before
    for each in descriptors:
        os.close(each)


@pytest.mark.parametrize("kind", [0, 1, 2, 3, 9, 15, 99, *range(12, 20)])
def test_garbage_ends_the_link_and_not_the_server(kind: int) -> None:
    for body in (b"", b"\0\0\0\0", b"\4\0\0\0ssss", os.urandom(64)):
        content = (
            len(body).to_bytes(4, "little") + kind.to_bytes(2, "little") + b"\0\0" + (1).to_bytes(8, "little") + body
        )

        result, _ = executed(content, [])

        assert isinstance(result, NaiadError)


@pytest.mark.parametrize(
    ("kind", "count"), [(ARENA, 2), (ARENA, 0), (ARENA, 1), (RETIRED, 1), (Kind.ANSWER, 1), (0, 3)]
)
def test_descriptors_of_a_link_that_breaks_are_closed(kind: int, count: int) -> None:
    sent = [os.memfd_create("sent") for _ in range(3)]
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    connection = Connection(here, Memory())
    before = descriptors_and_memory()

    socket.send_fds(there, [frame_bytes(kind, 1, b"", count), frame_bytes(ARENA, 2, b"", 1)], sent)
    with pytest.raises(LinkBrokenError):
        connection.receive()
    connection.memory.close()
    connection.close()

    assert descriptors_and_memory()[0] == before[0] - 1
    for each in sent:
        os.close(each)
    there.close()


def test_descriptors_without_frames_break_the_link() -> None:
    sent = [os.memfd_create("sent") for _ in range(64)]
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    connection = Connection(here, Memory())
    before = descriptors_and_memory()

    def send_and_receive() -> None:
        socket.send_fds(there, [frame_bytes(Kind.ANSWER, 1, b"")], sent)
        connection.receive()

    for _ in range(4):
        send_and_receive()
    with pytest.raises(LinkBrokenError, match="without frames"):
        send_and_receive()
    connection.close()

    assert descriptors_and_memory()[0] == before[0] - 1
    for each in sent:
        os.close(each)
    there.close()


@pytest.mark.parametrize("by_another", [False, True])
def test_a_process_that_ends_before_it_is_written_to_fails_the_batch(by_another: bool) -> None:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    there.close()
    instance = instance_over(here)
    if by_another:  # another instance that shares the process has noticed its end
        instance.process.memory.close()

    with pytest.raises(WorkerDiedError):
        instance.execute(Batch([Request("m", {"x": Tensor.of("x", np.arange(3000))})], [1]))


@pytest.mark.parametrize(("alone", "kind"), [(False, Kind.EXECUTE), (True, Kind.EXECUTE_ALONE)])
def test_the_process_reads_what_the_server_writes(alone: bool, kind: Kind) -> None:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    instance = instance_over(here)
    instance.attach()
    instance.comes_alone(alone)
    other = Connection(there, Memory())

    instance.execute(Batch([Request("m", {"x": Tensor.of("x", np.arange(3000))})], [1]))
    (frame,) = other.receive()
    batch = batch_in(Decoder(frame.body, other.memory.read), "m", lambda index: CollectingSender(), None)

    assert frame.kind == kind
    assert batch.requests[0].inputs["x"].array.tolist() == list(range(3000))
    del batch
    other.send(Kind.DROPPED, 1, b"")
    instance.work.receive()
    assert is_free(instance.process.memory.own, instance.work)
    other.close()
    other.memory.close()
    instance.process.end()


class OpenCalls:
    """Model calls that come to no end: what was begun, and whether a stream was closed."""

    def __init__(self) -> None:
        self.begun: list[Future[Any]] = []
        self.streams = 0

    def begin(self, request: Request) -> "Future[Any]":
        self.begun.append(Future())
        return self.begun[-1]

    def stream(self, request: Request) -> "OpenCalls":
        self.streams += 1
        return self

    def close(self) -> None:
        self.streams -= 1


def test_the_end_of_a_process_ends_its_calls_its_streams_and_the_checks_of_its_readiness(tmp_path: Path) -> None:
    models = OpenCalls()
    context = ModelContext(parse_text('name: "m"'), 1, tmp_path, tmp_path, parts={ModelCallService.name: models})
    reasons: list[str] = []
    with connected() as (here, there):
        here.socket.settimeout(None)
        control = ControlLink(here, context, lambda number: ())
        caller = Caller(there, lambda requests: (0, []))
        for name in ("infer", "stream"):
            caller.begin(name, 0, [], request=Request("other", {}))
        check = threading.Thread(target=lambda: reasons.append(control.why_not_ready()), daemon=True)
        check.start()
        kinds: set[int] = set()
        while kinds != {Kind.REPLY, Kind.READY}:  # the stream was begun, and the check
            kinds |= {frame.kind for frame in there.receive()}
        assert (len(models.begun), models.streams) == (1, 1)

        there.socket.shutdown(socket.SHUT_RDWR)
        control.close()

        check.join(10)
        assert [*reasons, control.why_not_ready()] == ["its process has ended"] * 2
        assert models.begun[0].cancelled()
        assert models.streams == 0


def test_senders_may_open_while_an_answer_with_strings_is_taken_on_a_thread() -> None:
    class Opening(int):
        """The number of a batch; to compare it opens a sender, as the event loop does at any time."""

        __hash__ = int.__hash__

        def __eq__(self, other: object) -> bool:
            instance._senders[next(numbers), 0] = NullSender()
            return False

    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    instance, numbers = instance_over(here), itertools.count(10)
    instance._senders[1, 0] = instance._senders[2, 0] = NullSender()

    instance._forget(Opening(3))

    assert len(instance._senders) == 4
    instance.process.end()
    there.close()


def test_a_connection_that_is_closed_frees_its_buffer() -> None:
    with connected() as (here, there):
        (buffer,) = here._buffers
        there.send(40, 1, b"frame")
        here.receive()

        here.close()

        unshared = bytearray()  # its count differs between versions of Python
        assert sys.getrefcount(buffer) == sys.getrefcount(unshared)
        with pytest.raises(LinkClosedError):
            here.receive()


def test_what_the_garbage_collector_sends_amid_a_write_follows_it() -> None:
    class Interrupted:
        """A socket amid whose writes more is sent, and which takes a part of each."""

        def __init__(self, link: socket.socket) -> None:
            self.sent = 0
            self._link = link

        def send(self, content: bytes, flags: int) -> int:
            self._collect()
            return self._link.send(content[:7], flags)

        def sendmsg(self, buffers: Sequence[bytes], ancillary: Any, flags: int) -> int:
            self._collect()
            return self._link.sendmsg([b"".join(buffers)[:7]], ancillary, flags)

        def close(self) -> None:
            self._link.close()

        def _collect(self) -> None:
            if self.sent < 3:
                self.sent += 1
                here.send(40, self.sent, b"late")

    with connected() as (here, there):
        here.socket = Interrupted(here.socket)  # type: ignore[assignment]
        here.send(30, 0, b"first")
        frames = there.receive()

    assert [(frame.kind, frame.number) for frame in frames] == [(30, 0), (40, 1), (40, 2), (40, 3)]
