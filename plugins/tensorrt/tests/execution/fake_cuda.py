"""CUDA over memory of the host, as late as it may be: nothing on a stream is done before it is waited for."""

import ctypes
from collections import Counter
from collections.abc import Callable

import numpy as np

from naiad_tensorrt.execution.cuda import CudaError

_GARBAGE = 0xA5


class Mark:
    """The place of an event on its stream; `done` when all before it is."""

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.done = False


class Copy:
    """A copy that is due from or to memory of the host."""

    def __init__(self, host: int, work: Callable[[], object]) -> None:
        self.host = host
        self.work = work

    def __call__(self) -> None:
        self.work()


class FakeCuda:
    """A fake of `cuda_protocol.Cuda`; `fail` names functions and the number of the error that they raise once.

    Fresh memory holds garbage. Memory that is used after it was given back, or beyond its end, is an error of the test.
    """

    def __init__(self, room: int = 1 << 24) -> None:
        self.room = room
        self.fail: dict[str, int] = {}
        self.calls: Counter[str] = Counter()
        self.priorities: list[int] = []
        self.blocking_events: list[bool] = []
        self.device: dict[int, np.ndarray] = {}
        self.pinned: dict[int, np.ndarray] = {}
        self.queues: dict[int, list[Callable[[], None] | Mark]] = {}
        self.events: dict[int, Mark | None] = {}
        self.graphs: dict[int, list[Callable[[], None] | Mark]] = {}
        self.launched: list[int] = []
        self.capturing: list[Callable[[], None] | Mark] | None = None
        self._handles = 100

    @property
    def open(self) -> int:
        """How many things are not given back."""
        return sum(map(len, (self.device, self.pinned, self.queues, self.events, self.graphs)))

    def view(self, address: int, size: int) -> np.ndarray:
        """The bytes of device memory from an address on."""
        for start, memory in self.device.items():
            if start <= address and address + size <= start + len(memory):
                return memory[address - start : address - start + size]
        raise AssertionError(f"{size} bytes at {address:#x} are no memory of the device")

    def put(self, stream: int, work: Callable[[], None] | Mark) -> None:
        """Put work on a stream, or in the graph that is captured."""
        (self.queues[stream] if self.capturing is None else self.capturing).append(work)

    def use_device(self, device: int) -> None:
        self._called("use_device")
        assert device == 0

    def priority_range(self) -> tuple[int, int]:
        return 0, -5

    def create_stream(self, priority: int) -> int:
        self.priorities.append(priority)
        stream = self._handle()
        self.queues[stream] = []
        return stream

    def destroy_stream(self, stream: int) -> None:
        assert not self.queues.pop(stream), "the stream still has work"

    def synchronize_stream(self, stream: int) -> None:
        self._called("synchronize_stream")
        assert self.capturing is None
        self._wait(stream, None)

    def let_stream_wait(self, stream: int, event: int) -> None:
        mark = self.events[event]
        assert mark is not None
        self.put(stream, lambda: self._advance(mark.stream, mark))

    def create_event(self, blocking: bool) -> int:
        self.blocking_events.append(blocking)
        event = self._handle()
        self.events[event] = None
        return event

    def destroy_event(self, event: int) -> None:
        del self.events[event]

    def record_event(self, event: int, stream: int) -> None:
        mark = self.events[event] = Mark(stream)
        self.put(stream, mark)

    def wait_event(self, event: int) -> None:
        self._called("wait_event")
        mark = self.events[event]
        if mark is not None and not mark.done:
            self._wait(mark.stream, mark)

    def allocate(self, size: int) -> int:
        self._called("allocate")
        if sum(map(len, self.device.values())) + size > self.room:
            raise CudaError("cudaMalloc failed: out of memory (CUDA error 2)", 2)
        return self._memory(self.device, size)

    def free(self, address: int) -> None:
        for stream in self.queues:
            self._advance(stream, None)
        del self.device[address]

    def allocate_pinned(self, size: int) -> int:
        self._called("allocate_pinned")
        return self._memory(self.pinned, size)

    def free_pinned(self, address: int) -> None:
        end = address + len(self.pinned.pop(address))
        due = [work.host for queue in self.queues.values() for work in queue if isinstance(work, Copy)]
        assert not any(address <= host < end for host in due), "page-locked memory is given back while a copy is due"

    def copy_to_device(self, target: int, source: int, size: int, stream: int) -> None:
        self._called("copy_to_device")
        self.put(stream, Copy(source, lambda: ctypes.memmove(self.view(target, size).ctypes.data, source, size)))

    def copy_to_host(self, target: int, source: int, size: int, stream: int) -> None:
        self._called("copy_to_host")
        self.put(stream, Copy(target, lambda: ctypes.memmove(target, self.view(source, size).ctypes.data, size)))

    def copy_on_device(self, target: int, source: int, size: int, stream: int) -> None:
        self._called("copy_on_device")
        self.put(stream, Copy(source, lambda: ctypes.memmove(self.view(target, size).ctypes.data, source, size)))

    def fill_zero(self, address: int, size: int, stream: int) -> None:
        self._called("fill_zero")
        self.put(stream, lambda: self.view(address, size).fill(0))

    def begin_capture(self, stream: int) -> None:
        self._called("begin_capture")
        assert not self.queues[stream]
        self.capturing = []

    def end_capture(self, stream: int) -> int:
        captured, self.capturing = self.capturing, None
        self._called("end_capture")
        assert captured is not None
        graph = self._handle()
        self.graphs[graph] = captured
        return graph

    def launch_graph(self, graph: int, stream: int) -> None:
        self._called("launch_graph")
        self.launched.append(graph)
        self.queues[stream].extend(self.graphs[graph])

    def destroy_graph(self, graph: int) -> None:
        del self.graphs[graph]

    def _called(self, name: str) -> None:
        self.calls[name] += 1
        number = self.fail.pop(name, 0)
        if number:
            raise CudaError(f"{name} failed (CUDA error {number})", number)

    def _handle(self) -> int:
        self._handles += 1
        return self._handles

    def _memory(self, kind: dict[int, np.ndarray], size: int) -> int:
        assert self.capturing is None, "no memory can be had while a graph is captured"
        memory = np.full(size, _GARBAGE, np.uint8)
        kind[memory.ctypes.data] = memory
        return int(memory.ctypes.data)

    def _wait(self, stream: int, until: Mark | None) -> None:
        """Other streams are faster than the one that is waited for, as far as nothing holds them back."""
        for other in self.queues:
            if other != stream:
                self._advance(other, None)
        self._advance(stream, until)

    def _advance(self, stream: int, until: Mark | None) -> None:
        queue = self.queues[stream]
        while queue:
            work = queue.pop(0)
            if isinstance(work, Mark):
                work.done = True
            else:
                work()
            if work is until:
                return
