"""Executor: what one instance holds on a GPU, and the meaning of its failures."""

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from types import ModuleType
from typing import Any

from naiad.errors import InvalidArgumentError, UnavailableError
from naiad_tensorrt.description import EngineDescription
from naiad_tensorrt.execution import cuda as gpu
from naiad_tensorrt.execution.contexts import Contexts
from naiad_tensorrt.execution.cuda import CudaError
from naiad_tensorrt.execution.cuda_protocol import Cuda
from naiad_tensorrt.execution.execution_slot import ExecutionSlot
from naiad_tensorrt.execution.failures import device_lost, failure_of
from naiad_tensorrt.execution.graphs import Graphs, capture
from naiad_tensorrt.execution.runner import NO_MARKS, Marks, Runner
from naiad_tensorrt.execution.streams import Streams
from naiad_tensorrt.options import ExecutionOptions, GraphSpec
from naiad_tensorrt.runtime import complaints


class Executor:
    """Runs an engine (an `ICudaEngine` of the module `trt`) on a GPU, one batch at a time, on a stream of its own.

    The engine may be shared by several executors, each of which is used by one thread at a time. Making one prepares a
    context for each profile of the options and captures their CUDA graphs; a graph that cannot be captured is a
    warning. Raises ModelFailedError where TensorRT refuses, UnavailableError for too little memory or a lost device.
    """

    def __init__(
        self,
        trt: ModuleType,
        engine: Any,
        description: EngineDescription,
        options: ExecutionOptions,
        device: int,
        cuda: Cuda = gpu,
    ) -> None:
        self._trt = trt
        self._engine = engine
        self._description = description
        self._options = options
        self._device = device
        self._cuda = cuda
        self._broken = ""
        self._held = ExitStack()
        self._slots: dict[int, ExecutionSlot] = {}
        self._open: list[ExecutionSlot] = []
        with complaints() as errors:
            try:
                cuda.use_device(device)
                self._prepare()
            except Exception as error:
                self.close()
                raise failure_of(error, errors, device) from error

    def run(
        self,
        inputs: Mapping[str, Any],
        profile: int,
        *,
        requested: Collection[str] | None = None,
        stay: Collection[str] = (),
        marks: Marks | None = None,
    ) -> dict[str, Any]:
        """The outputs (those `requested`, else all) for one batch of inputs, on a profile of the options.

        An input is an array of the host; or anything with `__dlpack__` in the memory of this GPU, which is finished
        and does not pass through the host; or a list of these, which are joined along dimension 0. Shapes are whole
        ones, BF16 is `uint16`. Tensors of formats that round channels up have as many channels as they have.

        Outputs are arrays of the host that belong to the caller. Those in `stay` are `DeviceTensor`s on the GPU, over
        memory that is not reused while they are referenced, unless their layout there is not linear.

        Raises InvalidArgumentError for inputs that the engine does not take, ModelFailedError when TensorRT fails, and
        UnavailableError for too little memory; the executor can be used again. After an error of the device itself it
        cannot: this run and all others raise UnavailableError, and `ready` gives the reason.
        """
        if self._broken:
            raise UnavailableError(self._broken)
        with complaints() as errors:
            try:
                self._cuda.use_device(self._device)
                return self._runner.run(inputs, self._slot(profile), self._graphs, requested, stay, marks or NO_MARKS)
            except Exception as error:
                self._settle(error)
                raise failure_of(error, errors, self._device) from error

    def ready(self) -> str:
        """Why it cannot be used any more, "" while it can."""
        return self._broken

    def memory_usage(self) -> int:
        """The bytes on the GPU of its inputs, outputs and contexts; the weights are the engine's."""
        return self._contexts.memory + self._runner.memory + sum(slot.memory for slot in self._open)

    def close(self) -> None:
        """Release all GPU resources; errors of a lost device are ignored."""
        with suppress(CudaError):
            self._cuda.use_device(self._device)
        self._held.close()
        self._slots.clear()
        self._open.clear()

    def _prepare(self) -> None:
        cuda, options = self._cuda, self._options
        self._streams = Streams(cuda, options.priority, options.output_copy_stream, options.busy_wait_events)
        self._release_later(self._streams.close)
        self._runner = Runner(cuda, self._streams, self._description, options, self._device)
        self._release_later(self._runner.close)
        self._contexts = Contexts(self._trt, self._engine, cuda, self._streams.main)
        self._release_later(self._contexts.close)
        for profile in options.profiles:
            self._slots[profile] = self._new_slot(profile, for_graph=False)
        self._graphs = Graphs(options.graphs, self._captured)

    def _release_later(self, release: Callable[[], None]) -> None:
        def quietly() -> None:
            with suppress(CudaError):
                release()

        self._held.callback(quietly)

    def _new_slot(self, profile: int, for_graph: bool) -> ExecutionSlot:
        context = self._contexts.make(profile, self._options.allocation_strategy, for_graph)
        slot = ExecutionSlot(self._cuda, self._trt, context, self._description, profile, self._streams.main)
        self._release_later(slot.close)
        self._open.append(slot)
        return slot

    def _captured(self, spec: GraphSpec) -> ExecutionSlot:
        slot = self._new_slot(spec.profile, for_graph=True)
        try:
            capture(slot, spec, self._description, self._cuda, self._streams.main, self._contexts.captures_itself)
        except Exception:
            slot.close()
            raise
        return slot

    def _slot(self, profile: int) -> ExecutionSlot:
        if profile not in self._slots:
            known = ", ".join(map(str, self._slots))
            raise InvalidArgumentError(f"profile {profile} is not among those of this instance: {known}")
        return self._slots[profile]

    def _settle(self, error: Exception) -> None:
        """Synchronise the streams, so that no copy writes to memory after its release. Raises for a lost device."""
        lost = self._streams.settle()
        self._runner.forget()
        if isinstance(error, CudaError) and error.is_fatal:
            lost = error
        if lost is not None:
            self._broken = device_lost(self._device, lost)
            raise UnavailableError(self._broken) from lost
