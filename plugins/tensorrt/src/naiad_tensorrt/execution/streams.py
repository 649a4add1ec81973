"""CUDA streams and events of an instance: one stream to execute on, an optional one for copies."""

from naiad_config import ModelPriority
from naiad_tensorrt.execution.cuda import CudaError
from naiad_tensorrt.execution.cuda_protocol import Cuda


def stream_priority(priority: ModelPriority, least: int, greatest: int) -> int:
    """CUDA's number for a priority of a model, between the `least` and the `greatest` of the device; 0 is usual. Pure.

    CUDA counts downwards: the greatest priority is the smallest number.
    """
    if priority is ModelPriority.PRIORITY_MAX:
        return greatest
    if priority is ModelPriority.PRIORITY_MIN:
        return least
    return min(max(0, greatest), least)


class Streams:
    """`main` executes, and `copies` brings outputs back (the same stream unless `apart`)."""

    def __init__(self, cuda: Cuda, priority: ModelPriority, apart: bool, busy_wait: bool) -> None:
        self._cuda = cuda
        self._open: list[int] = []
        self._events: list[int] = []
        number = stream_priority(priority, *cuda.priority_range())
        for _ in range(2 if apart else 1):
            self._open.append(cuda.create_stream(number))
        for _ in range(2):
            self._events.append(cuda.create_event(not busy_wait))
        self.main, self.copies = self._open[0], self._open[-1]
        self._computed, self._copied = self._events

    def mark_computed(self) -> None:
        """What is on `main` now is the execution; copies start after it."""
        self._cuda.record_event(self._computed, self.main)
        if self.copies != self.main:
            self._cuda.let_stream_wait(self.copies, self._computed)

    def wait_computed(self) -> None:
        """Wait for the execution."""
        self._cuda.wait_event(self._computed)

    def wait_copied(self) -> None:
        """Wait for the copies that are on `copies` now."""
        self._cuda.record_event(self._copied, self.copies)
        self._cuda.wait_event(self._copied)

    def settle(self) -> CudaError | None:
        """Wait for all streams, ignoring failed runs. Returns the error of a lost device, else None."""
        lost = None
        for stream in self._open:
            try:
                self._cuda.synchronize_stream(stream)
            except CudaError as error:
                lost = error if error.is_fatal else lost
        return lost

    def close(self) -> None:
        """Let go of streams and events on which nothing runs."""
        while self._events:
            self._cuda.destroy_event(self._events.pop())
        while self._open:
            self._cuda.destroy_stream(self._open.pop())
