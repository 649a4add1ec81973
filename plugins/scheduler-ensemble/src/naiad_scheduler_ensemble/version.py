"""An ensemble version: a servable over the versions of its models."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from naiad.backend import ModelContext
from naiad.errors import ShuttingDownError, UnsupportedError
from naiad.in_flight import InflightRequest, Occupancy
from naiad.reports import InstanceReport, Readiness
from naiad.servables import Lease, ModelResolver, Servable, ServableContext
from naiad.server import Deliver
from naiad.types import Request
from naiad_config import ModelConfig, ModelTransactionPolicy
from naiad_scheduler_ensemble.bound import BoundEnsemble
from naiad_scheduler_ensemble.call import EnsembleCall
from naiad_scheduler_ensemble.composition import EnsembleComposition
from naiad_scheduler_ensemble.residence import Residence
from naiad_statistics.reports import ModelStatistics
from naiad_statistics.versions import VersionCounters
from naiad_tensors.devices import Device


class EnsembleVersion:
    """Serves an ensemble with the versions of its models that served when it was bound. For the event loop's thread.

    `leases` are those on the versions, one for each step; they are released when it is closed. When one of the versions
    is replaced, another EnsembleVersion of the same `context` takes over, and goes on with the same `counters`.
    """

    def __init__(
        self,
        context: ServableContext,
        version: ModelContext,
        composition: EnsembleComposition,
        leases: Sequence[Lease],
        counters: VersionCounters,
        models: ModelResolver,
    ) -> None:
        steps = tuple(lease.servable for lease in leases)
        self.context = context
        self.config = with_policy(version.config, composition)
        self.name, self.version = self.config.name, version.version
        self.labels: Mapping[str, tuple[str, ...]] = _labels(context.labels, composition, steps)
        self.counters = counters
        self._leases = leases
        residence = Residence(version.config, steps)
        self._ensemble = BoundEnsemble(self.name, self.version, composition, steps, residence, counters, models)
        self._validate = context.validator(self.config)
        self.stages = context.stages(version, counters, self.submit, self._proceed)

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> InflightRequest:
        """Check a request and submit its first steps. Raises what the checks, or one of these steps, refuse.

        Raises UnsupportedError when a model of it is decoupled and the caller cannot take several responses.
        """
        if self._ensemble.composition.decoupled and not streams:
            raise UnsupportedError(
                f"this call takes exactly one response and doesn't support models with decoupled transaction policy, "
                f"such as '{self.name}'; ask it over ModelStreamInfer (gRPC), generate_stream (HTTP) or Server.stream"
            )
        if self.stages.host_only and request.on_device is not None:
            request = replace(request, on_device=None)
        batch_size = self._validate(request)
        if request.trace is not None:
            request.trace.queued(self.version, request, request)
        if self.stages.checked is not None:
            return self.stages.checked(request, deliver, streams)
        return self._begin(request, deliver, batch_size)

    def _proceed(self, request: Request, deliver: Deliver, streams: bool) -> InflightRequest:
        """Begin with a request that was checked and has passed the stages."""
        return self._begin(request, deliver, self._validate(request))

    def _begin(self, request: Request, deliver: Deliver, batch_size: int) -> InflightRequest:
        call = EnsembleCall(self._ensemble, request, deliver, batch_size)
        self._ensemble.began(call)
        try:
            call.begin()
        except BaseException:
            self._ensemble.ended(call)  # also where it had no time to leave
            raise
        return call

    def occupancy(self) -> Sequence[Occupancy]:
        """The room at its steps, where it is limited and requests take it up."""
        return self._ensemble.occupancy()

    async def drain(self) -> None:
        """Return when every request taken in has been answered."""
        await self.stages.drained()
        await self._ensemble.drained.wait()

    async def close(self, grace: float | None = None) -> bool:
        """Fail what is still open, and end the leases; there is nothing to wait for."""
        error = ShuttingDownError(
            f"Server is stopping, scheduler for model '{self.name}' has stopped accepting new inference requests"
        )
        self.stages.fail_all(error)
        for call in list(self._ensemble.calls):
            call.fail(error)
        for lease in self._leases:
            lease.release()
        return True

    def readiness(self) -> Readiness:
        """Ready while every model of it is; the reasons name those that are not, and what is wrong with the others."""
        step_readiness = [(index, step, step.readiness()) for index, step in enumerate(self._ensemble.steps)]
        reasons = tuple(
            f"step {index}, model '{step.name}': {reason}"
            for index, step, each in step_readiness
            for reason in each.reasons
        )
        return Readiness(all(each.ready for _, _, each in step_readiness), reasons)

    def instances(self) -> tuple[InstanceReport, ...]:
        """None: its models have theirs."""
        return ()

    def input_devices(self, name: str) -> frozenset[Device]:
        """Those of the steps that read that input, unless a stage reads it before them."""
        return frozenset() if self.stages.host_only else self._ensemble.residence.input_devices(name)

    @property
    def waiting(self) -> int:
        """How many requests wait because a step has no room for them; others wait at the models."""
        return sum(call.is_waiting for call in self._ensemble.calls)

    @property
    def outstanding(self) -> int:
        """How many requests are not over."""
        return len(self._ensemble.calls) + self.stages.outstanding

    def statistics(self) -> ModelStatistics:
        """The counters as they stand."""
        return self.counters.report(self.name, self.version, ())


def with_policy(config: ModelConfig, composition: EnsembleComposition) -> ModelConfig:
    """The configuration as it is shown: decoupled where one of the models is, and with a policy either way."""
    return replace(config, model_transaction_policy=ModelTransactionPolicy(decoupled=composition.decoupled))


def _labels(
    own: Mapping[str, tuple[str, ...]], composition: EnsembleComposition, steps: Sequence[Servable]
) -> dict[str, tuple[str, ...]]:
    """The labels of each output: its own, else those of the model that produces it."""
    labels = dict(own)
    for composed, step in zip(composition.steps, steps, strict=True):
        for output, name in composed.outputs.items():
            if output not in labels and name in step.labels:
                labels[output] = step.labels[name]
    return labels
