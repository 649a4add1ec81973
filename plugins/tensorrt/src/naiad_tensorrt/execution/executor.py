"""Executing an engine on one GPU: inputs there, one execution, outputs back."""

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from naiad.errors import InvalidArgumentError, UnavailableError
from naiad_tensorrt.description import EngineDescription, EngineTensor, Shape
from naiad_tensorrt.execution import cuda as gpu
from naiad_tensorrt.execution.collecting import Collector, Computed
from naiad_tensorrt.execution.contexts import Contexts
from naiad_tensorrt.execution.cuda import CudaError
from naiad_tensorrt.execution.failures import device_lost, failure_of
from naiad_tensorrt.execution.feeding import Feeder
from naiad_tensorrt.execution.given import Given, given_input
from naiad_tensorrt.execution.graphs import Graphs, capture
from naiad_tensorrt.execution.lane import Lane
from naiad_tensorrt.execution.seam import Cuda
from naiad_tensorrt.execution.streams import Streams
from naiad_tensorrt.options import ExecutionOptions, GraphSpec
from naiad_tensorrt.runtime import complaints


class Marks(Protocol):
    """Who wants to know when the parts of a run are over; a `naiad.backend.Batch` does."""

    def mark_input_done(self) -> None:
        """The inputs are on their way to the GPU."""
        ...

    def mark_infer_done(self) -> None:
        """The GPU has executed."""
        ...


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
        self._lanes: dict[int, Lane] = {}
        self._open: list[Lane] = []
        with complaints() as told:
            try:
                cuda.use_device(device)
                self._prepare()
            except Exception as error:
                self.close()
                raise failure_of(error, told, device) from error

    def run(
        self,
        inputs: Mapping[str, Any],
        profile: int,
        *,
        wanted: Collection[str] | None = None,
        marks: Marks | None = None,
    ) -> dict[str, np.ndarray]:
        """The outputs (those `wanted`, else all) for one batch of inputs, on a profile of the options.

        An input is an array of the host; or anything with `__dlpack__` in the memory of this GPU, which does not pass
        through the host; or a list of these, which are joined along dimension 0. Shapes are whole ones, BF16 is
        `uint16`. Outputs are arrays of the host that belong to the caller.

        Raises InvalidArgumentError for inputs that the engine does not take, ModelFailedError when TensorRT fails, and
        UnavailableError for too little memory; the executor can be used again. After an error of the device itself it
        cannot: this run and all others raise UnavailableError, and `ready` gives the reason.
        """
        if self._broken:
            raise UnavailableError(self._broken)
        with complaints() as told:
            try:
                self._cuda.use_device(self._device)
                return self._run(inputs, self._lane(profile), wanted, marks)
            except Exception as error:
                self._settle(error)
                raise failure_of(error, told, self._device) from error

    def ready(self) -> str:
        """Why it cannot be used any more, "" while it can."""
        return self._broken

    def memory_usage(self) -> int:
        """The bytes on the GPU of its inputs, outputs and contexts; the weights are the engine's."""
        return self._contexts.memory + sum(lane.memory for lane in self._open)

    def close(self) -> None:
        """Give everything back. What a lost device says meanwhile is of no interest."""
        with suppress(CudaError):
            self._cuda.use_device(self._device)
        self._held.close()
        self._lanes.clear()
        self._open.clear()

    def _prepare(self) -> None:
        cuda, options = self._cuda, self._options
        self._streams = Streams(cuda, options.priority, options.output_copy_stream, options.busy_wait_events)
        self._release_later(self._streams.close)
        self._feeder = Feeder(cuda, self._streams.main, options.pinned_input)
        self._release_later(self._feeder.close)
        self._collector = Collector(cuda, self._streams.copies, options.pinned_output)
        self._release_later(self._collector.close)
        budget = options.weight_streaming_budget
        if budget is not None and self._engine.weight_streaming_budget_v2 != budget:
            self._engine.weight_streaming_budget_v2 = budget
        self._contexts = Contexts(self._trt, self._engine, cuda, self._streams.main)
        self._release_later(self._contexts.close)
        for profile in options.profiles:
            self._lanes[profile] = self._new_lane(profile, for_graph=False)
        self._graphs = Graphs(options.graphs, self._captured)

    def _release_later(self, release: Callable[[], None]) -> None:
        def quietly() -> None:
            with suppress(CudaError):
                release()

        self._held.callback(quietly)

    def _new_lane(self, profile: int, for_graph: bool) -> Lane:
        context = self._contexts.make(profile, self._options.allocation_strategy, for_graph)
        lane = Lane(self._cuda, self._trt, context, self._description, profile, self._streams.main)
        self._release_later(lane.close)
        self._open.append(lane)
        return lane

    def _captured(self, spec: GraphSpec) -> Lane:
        lane = self._new_lane(spec.profile, for_graph=True)
        try:
            capture(lane, spec, self._description, self._cuda, self._streams.main, self._contexts.captures_itself)
        except Exception:
            lane.close()
            raise
        return lane

    def _lane(self, profile: int) -> Lane:
        if profile not in self._lanes:
            known = ", ".join(map(str, self._lanes))
            raise InvalidArgumentError(f"profile {profile} is not among those of this instance: {known}")
        return self._lanes[profile]

    def _run(
        self, inputs: Mapping[str, Any], lane: Lane, wanted: Collection[str] | None, marks: Marks | None
    ) -> dict[str, np.ndarray]:
        given = self._given(inputs)
        lane, wished = self._prepared(lane, given)
        for name, each in given.items():
            if not each.tensor.on_host:
                self._feeder.feed(each, lane.input_shapes[name], lane.address(name))
        if marks is not None:
            marks.mark_input_done()
        lane.execute()
        tensors = [tensor for tensor in self._description.outputs if wanted is None or tensor.name in wanted]
        return self._fetch(lane, tensors, wished, marks)

    def _given(self, inputs: Mapping[str, Any]) -> dict[str, Given]:
        missing = [tensor.name for tensor in self._description.inputs if tensor.name not in inputs]
        if missing:
            raise InvalidArgumentError(f"the engine needs the input '{missing[0]}' as well; send it")
        return {
            tensor.name: given_input(tensor, inputs[tensor.name], self._device, self._streams.main)
            for tensor in self._description.inputs
        }

    def _prepared(self, lane: Lane, given: Mapping[str, Given]) -> tuple[Lane, Mapping[str, Shape]]:
        """The lane to run these inputs on, that of the profile or of a graph, and the shapes of their outputs."""
        shapes = {name: each.shape for name, each in given.items()}
        read = {name: self._feeder.whole(each) for name, each in given.items() if each.tensor.is_shape_tensor}
        values = {name: tuple(int(value) for value in array.ravel()) for name, array in read.items()}
        graph = self._graphs.find(lane.profile, shapes, values)
        if graph is not None and graph.input_shapes == shapes:
            return graph, graph.output_shapes
        lane.shape(shapes, {name: array for name, array in read.items() if given[name].tensor.on_host})
        if graph is None:
            lane.bind()
        return graph or lane, lane.output_shapes

    def _fetch(
        self, lane: Lane, tensors: list[EngineTensor], wished: Mapping[str, Shape], marks: Marks | None
    ) -> dict[str, np.ndarray]:
        self._streams.mark_computed()
        computed = [_computed(lane, tensor, wished) for tensor in tensors if not tensor.on_host]
        # a copy to memory that is not page-locked waits for the execution itself, and the mark would come too late
        copied = self._collector.start(computed) if self._options.pinned_output else None
        self._streams.wait_computed()
        if marks is not None:
            marks.mark_infer_done()
        if copied is None:
            copied = self._collector.start(computed)
        self._streams.wait_copied()
        self._feeder.forget()
        arrays = self._collector.finish(computed, copied)
        return {t.name: lane.host_output(t) if t.on_host else arrays[t.name] for t in tensors}

    def _settle(self, error: Exception) -> None:
        """Wait for what is on the streams, so that nobody writes to memory that is let go; raises for a lost device."""
        lost = self._streams.settle()
        self._feeder.forget()
        if isinstance(error, CudaError) and error.is_fatal:
            lost = error
        if lost is not None:
            self._broken = device_lost(self._device, lost)
            raise UnavailableError(self._broken) from lost


def _computed(lane: Lane, tensor: EngineTensor, wished: Mapping[str, Shape]) -> Computed:
    if not lane.is_late_output(tensor.name):
        return Computed(tensor, lane.address(tensor.name), lane.output_shapes[tensor.name], wished[tensor.name])
    shape = lane.late_shape(tensor.name)
    return Computed(tensor, lane.address(tensor.name), shape, shape)
