"""Admission of requests: validation against the configuration, then the stages of the version, then its queue."""

from collections.abc import Hashable
from dataclasses import replace

from naiad._engine.call import Call
from naiad._engine.instances import Instances
from naiad._engine.queue import ModelQueue
from naiad._engine.stages import OfferedStages, VersionStages
from naiad.errors import InvalidArgumentError, ModelNotReadyError, UnsupportedError
from naiad.in_flight import InflightRequest
from naiad.server import Deliver
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_tensors.inputs import DeclaredInputs


class Admission:
    """Takes the requests of one version in: validates them, and queues them when they have passed its `stages`."""

    def __init__(
        self,
        version: int,
        validator: "RequestValidator",
        queue: ModelQueue,
        instances: Instances,
        offered: OfferedStages,
    ) -> None:
        self._version = version
        self._validator = validator
        self._queue = queue
        self._instances = instances
        self._decoupled = queue.responses.decoupled
        self.stages = VersionStages(offered, self.submit, self._enqueue)

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> InflightRequest:
        """Check a request and queue it. Raises InvalidArgumentError, ModelNotReadyError or QueueFullError at once.

        Raises UnsupportedError when the model is decoupled and the caller cannot take several responses.
        """
        model, stages = self._queue.responses.model, self.stages
        if self._decoupled and not streams:
            raise UnsupportedError(
                f"this call takes exactly one response and doesn't support models with decoupled transaction policy, "
                f"such as '{model}'; ask it over ModelStreamInfer (gRPC), generate_stream (HTTP) or Server.stream"
            )
        transfer = request.transfer
        if transfer is not None and request.on_device is None and transfer.on_device is not None:
            request = replace(request, on_device=transfer.on_device)  # the caller's own stays as it is
        if stages.host_only and request.on_device is not None:
            request = replace(request, on_device=None)
        batch_size, shape_key = self._validator.check(request)
        if not self._instances.hopeful:
            raise ModelNotReadyError(
                f"model '{model}' version {self._version}: {self._instances.why_none_lives()}", 1.0
            )
        seen = self._validator.to_model_shape(request) if self._validator.reshapes else request
        if transfer is not None and (stages.host_only or request.trace is not None or self._decoupled):
            transfer.may_lend = False  # what keeps or shows tensors needs copies
        if request.trace is not None:
            request.trace.queued(self._version, request, seen)
        if stages.checked is not None:
            return stages.checked(request, deliver, streams)
        return self._queue.submit(seen, batch_size, shape_key, deliver)

    def _enqueue(self, request: Request, deliver: Deliver, streams: bool) -> Call:
        """Queue a request that `submit` has checked and that has passed the stages."""
        batch_size, shape_key = self._validator.measure(request)
        return self._queue.submit(self._validator.to_model_shape(request), batch_size, shape_key, deliver)


class RequestValidator:
    """Validates requests against the configuration of one model, whose inputs may have `reshapes`."""

    def __init__(self, config: ModelConfig) -> None:
        self._model = config.name
        self._inputs = DeclaredInputs(config)
        self._outputs = frozenset(output.name for output in config.output)
        self.reshapes = self._inputs.reshapes

    def check(self, request: Request) -> tuple[int, Hashable]:
        """The request's batch size and shape key: see `DeclaredInputs.check`. Raises InvalidArgumentError."""
        checked = self._inputs.check(request.inputs)
        if request.requested and not self._outputs.issuperset(request.requested):
            unknown = next(name for name in request.requested if name not in self._outputs)
            outputs = ",".join(f"'{name}'" for name in sorted(self._outputs))
            raise InvalidArgumentError(
                f"unexpected inference output '{unknown}' for model '{self._model}'; its outputs are {outputs}"
            )
        if request.priority < 0 or request.timeout_microseconds < 0:
            raise InvalidArgumentError("'priority' and 'timeout' must not be negative")
        return checked

    def measure(self, request: Request) -> tuple[int, Hashable]:
        """The result of `check` for a request that has passed it."""
        return self._inputs.measure(request.inputs)

    def validate(self, request: Request) -> tuple[Request, int]:
        """A request as the model sees it, and its batch size. Raises InvalidArgumentError."""
        batch_size, _ = self.check(request)
        return self.to_model_shape(request), batch_size

    def to_model_shape(self, request: Request) -> Request:
        """The request with its inputs reshaped where the configuration says so (views, no copy)."""
        return replace(request, inputs=self._inputs.reshaped(request.inputs)) if self.reshapes else request
