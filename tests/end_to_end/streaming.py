"""A model that streams as much as it is asked for, and readers of its streams over HTTP."""

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from . import models
from .conftest import ending_well
from .running import PATIENCE, Running, Wire, post, until

TELLS = """
from collections.abc import {iterator}

import numpy as np
from naiad_custom import BYTES, INT32, Array, model

@model(outputs=("number", "text"){options})
{kind}def tells(
    count: Array[INT32, 1], size: Array[INT32, 1]
) -> {iterator}[tuple[Array[INT32, 1], Array[BYTES, 1]]]:
    for number in range(int(count[0])):
        yield np.array([number], np.int32), np.array([b"x" * int(size[0])], object)
"""
ENDLESS = 2**31 - 1
TOGETHER = 300
"""So many streams the model gives at once."""


def write_tells(repository: Path, name: str = "tells") -> None:
    """A model that gives `count` responses, each with its `number` and a fresh `text` of `size` letters."""
    options = f", concurrency={TOGETHER}"
    models.write(repository, name, TELLS.format(iterator="AsyncIterator", kind="async ", options=options))


def write_tells_by_threads(repository: Path, name: str, instances: int) -> None:
    """The same, but that each stream takes an instance and its thread."""
    source = TELLS.format(iterator="Iterator", kind="", options="")
    models.write(repository, name, source, f"instance_group {{ count: {instances} }}")


BY_THREADS = 8
"""So many streams at once the model `tells_by_threads` gives."""


@contextmanager
def serving_streams(folder: Path) -> Iterator[Running]:
    """A server of models that stream, and of one that does not."""
    write_streams(folder / "models")
    words = ("--model-control-mode=explicit", "--load-model=*")
    with ending_well(Running(folder / "models", folder / "log", *words)) as running:
        yield running


def write_streams(repository: Path) -> None:
    """The models `tells`, `tells_by_threads` and `echo`."""
    models.write(repository, "echo", models.ECHO)
    write_tells(repository)
    write_tells_by_threads(repository, "tells_by_threads", BY_THREADS)


def ask_for(count: int, size: int = 1, model: str = "tells") -> bytes:
    """The bytes of a request for a stream."""
    return post(f"/v2/models/{model}/generate_stream", {"count": count, "size": size})


def events(wire: Wire) -> Iterator[dict]:
    """The documents of the events of the next answer, a stream. EOFError or ValueError where that is cut off."""
    assert _line(wire).startswith(b"HTTP/1.1 200 ")
    headers = list(iter(lambda: _line(wire), b"\r\n"))
    assert b"transfer-encoding: chunked\r\n" in [header.lower() for header in headers]
    rest = b""
    while size := int(_line(wire), 16):
        *whole, rest = (rest + wire.file.read(size)).split(b"\n\n")
        assert _line(wire) == b"\r\n"
        for event in whole:
            yield json.loads(event.removeprefix(b"data: "))
    assert (wire.file.readline(), rest) == (b"\r\n", b"")


def _line(wire: Wire) -> bytes:
    line: bytes = wire.file.readline()
    if not line:
        raise EOFError("the connection was closed within the answer")
    return line


def numbers(wire: Wire) -> list[int]:
    """The numbers of a whole stream."""
    return [event["number"] for event in events(wire)]


@contextmanager
def narrow(running: Running, count: int) -> Iterator[list[Wire]]:
    """So many connections for which the system keeps little that was not read."""
    with ExitStack() as stack:
        wires = []
        for _ in range(count):
            opened = stack.enter_context(socket.socket())
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            opened.settimeout(PATIENCE)
            opened.connect(("127.0.0.1", running.port))
            wires.append(Wire(opened))
            stack.callback(wires[-1].file.close)
        yield wires


def vanish(wire: Wire) -> None:
    """Reset the connection: what is under way is lost, and the server hears of it at once."""
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.file.close()
    wire.socket.close()


def sent(running: Running, model: str = "tells") -> int:
    """How many responses the model has sent so far."""
    counted = running.statistics(model)["response_stats"].values()
    return sum(each[kind]["count"] for each in counted for kind in ("success", "fail", "empty_response", "cancel"))


def ended(running: Running, model: str = "tells") -> int:
    """How many requests to the model are over, well or not."""
    counted = running.statistics(model)["inference_stats"]
    return int(counted["success"]["count"] + counted["fail"]["count"])


def stand_still(running: Running, model: str = "tells") -> None:
    """Return when the model has sent no response for a while."""
    running.read_all()
    counts = [-1]
    while counts[-3:] != [sent(running, model)] * 3:
        counts.append(sent(running, model))
        for _ in range(10):
            assert running.infer("echo", 1).status == 200


POOLED = 6
"""So many threads more a server may keep than before: those of the event loop's pool start as they are wanted."""


class Belongings:
    """The threads and open files of a server as they were once, for a test to compare with."""

    def __init__(self, running: Running) -> None:
        self._folder = Path(f"/proc/{running.pid}")
        threads, files = self._now()
        self._most = threads + POOLED, files

    def assert_they_are_back(self) -> None:
        """There are no more now than there were, or will be none soon."""
        with suppress(AssertionError):
            until(lambda: all(now <= most for now, most in zip(self._now(), self._most, strict=True)))
        assert all(now <= most for now, most in zip(self._now(), self._most, strict=True)), (self._now(), self._most)

    def _now(self) -> tuple[int, int]:
        return len(list((self._folder / "task").iterdir())), len(list((self._folder / "fd").iterdir()))
