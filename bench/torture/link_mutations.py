"""Seeded sequences of frames from the process of a model to the server, some broken in every way."""

import argparse
import array
import logging
import os
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
from naiad.backend import Batch, Reply, Reschedule
from naiad.errors import ModelFailedError, NaiadError
from naiad.types import Request
from naiad_tensors.tensors import Tensor

from bench.torture.mutations import ODD_VALUES, mutate_bytes
from naiad_process_workers.codec import Encoder
from naiad_process_workers.connection import ARENA, FREED, RETIRED, Connection, Memory
from naiad_process_workers.frames import LinkBrokenError, LinkClosedError, broken
from naiad_process_workers.instance import ProcessInstance
from naiad_process_workers.messages import Kind, put_answer, put_reply
from naiad_process_workers.remote_errors import put_error
from naiad_process_workers.services import ControlLink

_MOST_SECONDS = 2.0
"""Processor time of a sequence; one that takes longer is an attack."""
_HANGS_AFTER = 120.0
"""Seconds for a sequence; longer than a machine may stop this process."""
_DESCRIPTORS = socket.CMSG_SPACE(64 * 4)


class _Wire:
    """What a process writes, which goes to the server as it is or changed, with its descriptors."""

    def __init__(self, random: Random) -> None:
        self._random = random
        own, self._pipe = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        far, server = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._far = far
        for each in (own, self._pipe, far, server):
            each.setblocking(False)
        self.process = Connection(own, Memory())
        self.server = Connection(server, Memory())

    def carry(self, share: float) -> None:
        """Move what the process wrote; with that probability it is changed on the way."""
        random = self._random
        with suppress(BlockingIOError):
            while True:
                content, ancillary, _, _ = self._pipe.recvmsg(1 << 16, _DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
                if not content:
                    return
                descriptors = array.array("i", b"".join(each[2] for each in ancillary))
                if random.random() < share:
                    content = mutate_bytes(random, content)
                    if random.random() < 0.2 and descriptors:
                        os.close(descriptors.pop())
                    if random.random() < 0.1:
                        descriptors.append(os.memfd_create("foreign", os.MFD_CLOEXEC))
                cut = random.randrange(len(content)) if len(content) > 1 and random.random() < 0.3 else 0
                for part in (content[:cut], content[cut:]):
                    if part:
                        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)] if descriptors else []
                        self._far.sendmsg([part], rights)
                        for each in descriptors:
                            os.close(each)
                        descriptors = array.array("i")
                for each in descriptors:  # of content that the changes have emptied
                    os.close(each)

    def close(self) -> None:
        """Close both connections and what is between them."""
        for connection in (self.process, self.server):
            connection.close()
            connection.memory.close()
        self._pipe.close()
        self._far.close()


class _Sender:
    """Takes responses, as a caller that reads all of them."""

    def post(self, reply: object, final: bool = False) -> None:
        """The caller takes more at once."""

    send = post


def run_sequence(random: Random) -> str:
    """One process of an instance from its start to its end: how it ended. Raises what the server does not foresee."""
    wire = _Wire(random)
    control = SimpleNamespace(cancelled=lambda number, index: None, room=lambda number, index: None)
    process: Any = SimpleNamespace(
        numbers=iter(range(1, 1000)), requests={}, control=control, dies=lambda frame: None, work=None
    )
    instance = ProcessInstance("m_0", process, wire.server, 0, ["y"], 4, False, False)
    instance.attach()
    share = random.choice((0.0, 0.05, 0.3))
    try:
        for number in range(1, random.randrange(2, 8)):
            batch = _batch(random)
            instance.execute(batch)
            _answer(random, wire.process, number, batch)
            if random.random() < 0.2:
                _any_frame(random, wire.process)
            wire.carry(share)
            for _ in range(20):
                frames = wire.server.receive(wait=False)
                for frame in frames:
                    instance.take(frame)
                if not frames:
                    break
        return "open"
    except (LinkBrokenError, LinkClosedError):
        return "broken"
    finally:
        instance.lost("the sequence is over")
        wire.close()


def run_control_sequence(random: Random) -> str:
    """One control link, read on its thread, from its start to its end: how it ended."""
    wire, reasons = _Wire(random), list[str]()
    wire.server.socket.setblocking(True)
    context: Any = SimpleNamespace(config=SimpleNamespace(name="m"), parts={})
    link = ControlLink(wire.server, context, lambda number: (), reasons.append)
    try:
        for number in range(random.randrange(1, 8)):
            _call(random, wire.process, number)
            with suppress(OSError):
                wire.carry(random.choice((0.0, 0.05, 0.5)))
        return "broken" if reasons else "open"
    finally:
        with suppress(OSError):
            wire.server.socket.shutdown(socket.SHUT_RDWR)
        began = time.monotonic()
        link.close()
        if time.monotonic() - began > 4:
            raise RuntimeError("the thread of a control link does not end")
        wire.close()


def _batch(random: Random) -> Batch:
    tensors = {"x": Tensor.of("x", np.zeros((1, random.choice((0, 1, 16))), np.float32))}
    count = random.randrange(1, 5)
    return Batch([Request("m", tensors)] * count, [1] * count, lambda index: _Sender())  # type: ignore[arg-type, return-value]


def _outputs(random: Random) -> dict[str, Any]:
    arrays = (
        np.zeros(random.choice((0, 1, 16)), np.float32),
        np.zeros((2, random.choice((0, 3))), np.float16),
        np.arange(random.choice((3_000, 300_000))),
        np.array([b"a" * random.choice((0, 3, 9_000))] * 3, dtype=object),
    )
    return {name: random.choice(arrays) for name in random.sample("yzw", random.randrange(4))}


def _reply(random: Random) -> Any:
    outputs = _outputs(random)
    errors: Sequence[Any] = (ModelFailedError("no"), ValueError("x"), None, Reschedule(outputs))
    return random.choice((*errors, Reply(outputs), Reply(outputs, {"a": [1, "b"]})))


def _answer(random: Random, connection: Connection, number: int, batch: Batch) -> None:
    """What a process sends for a batch: an answer, an error, or responses of a sender."""
    count, encoder = len(batch.requests), Encoder(connection)
    choice = random.random()
    with suppress(NaiadError):
        if choice < 0.5:
            answer: Any = _outputs(random) if random.random() < 0.3 else [_reply(random) for _ in range(count)]
            put_answer(encoder, answer, batch)
            connection.send(random.choice((Kind.ANSWER, Kind.ANSWER, Kind.STRINGS)), number, encoder.body())
        elif choice < 0.6:
            put_error(encoder, random.choice((ModelFailedError("no"), ValueError("x"))), "Traceback")
            connection.send(random.choice((Kind.FAILED, Kind.DYING)), number, encoder.body())
        else:
            for _ in range(random.randrange(1, 5)):
                encoder = Encoder(connection)
                encoder.value([random.randrange(-1, count + 1), random.random() < 0.3])
                put_reply(encoder, _reply(random))
                connection.send(Kind.RESPONSE, number, encoder.body())
            encoder = Encoder(connection)
            encoder.value(random.randrange(count))
            connection.send(Kind.DROPPED, number, encoder.body())


def _any_frame(random: Random, connection: Connection) -> None:
    """A frame of any kind, its body numbers, a value or noise, perhaps with a descriptor."""
    kind = random.choice((ARENA, RETIRED, FREED, *Kind, 0, 99))
    bodies: Sequence[Callable[[], bytes]] = (
        lambda: struct.pack("<QQ", random.randrange(3), random.choice((0, 64, 1 << 40, (1 << 64) - 1))),
        lambda: struct.pack("<Q", random.choice((0, 4 << 20, 1 << 40))),
        lambda: struct.pack("<qqIB11x", 0, 0, random.choice((1, 1 << 20, (1 << 32) - 1)), 0),
        lambda: random.randbytes(random.randrange(100)),
    )
    descriptors = (os.memfd_create("own", os.MFD_CLOEXEC),) if random.random() < 0.3 else ()
    connection.put(kind, random.choice((0, 1, 2, 1 << 63)), random.choice(bodies)(), descriptors)
    connection.flush()
    for each in descriptors:
        os.close(each)


def _call(random: Random, connection: Connection, number: int) -> None:
    """A call of a service as a model makes it, or with odd arguments."""
    encoder, odd = Encoder(connection), [random.choice(ODD_VALUES) for _ in range(random.randrange(4))]
    names = ("family", "metric", "cancel", "stop", "close", "increment", "value", "next", "infer", "stream", "x")
    with suppress(TypeError, struct.error, ValueError):
        kind = random.choice((Kind.CALL, Kind.CALL, Kind.CALL, Kind.LOG, Kind.READINESS, Kind.ANSWER))
        family = ["family", ["a_total", "text", "counter"]]
        encoder.value(family if random.random() < 0.3 else [random.choice(names), odd] if kind == Kind.CALL else odd)
        connection.send(kind, number, encoder.body())


def _open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=13)
    arguments = parser.parse_args()
    counts, until = Counter[str](), time.monotonic() + arguments.seconds
    logging.disable()
    seed, before = arguments.seed, _open_descriptors()
    while time.monotonic() < until:
        random, began, worked = Random(seed), time.monotonic(), time.process_time()
        kind, run = ("control: ", run_control_sequence) if seed % 3 == 0 else ("work: ", run_sequence)
        try:
            counts[kind + run(random)] += 1
        except Exception as error:  # noqa: BLE001 - as the worker does
            if isinstance(broken(error), LinkBrokenError):
                counts[f"{kind}unforeseen {type(error).__name__}: {str(error)[:60]}"] += 1
        took, worked = time.monotonic() - began, time.process_time() - worked
        if worked > _MOST_SECONDS or took > _HANGS_AFTER:
            raise RuntimeError(f"the sequence of seed {seed} took {took:.1f} s, {worked:.1f} of them of the processor")
        if (kept := _open_descriptors() - before) > 0:
            raise RuntimeError(f"the sequence of seed {seed} left {kept} descriptors open")
        seed += 1
    print(f"{counts.total():,} sequences of seeds from {arguments.seed}: {dict(counts)}")


if __name__ == "__main__":
    main()
