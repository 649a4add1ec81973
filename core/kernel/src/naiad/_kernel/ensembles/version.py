"""One version of an ensemble: what a model version is to its callers, over the versions of its models."""

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from naiad._kernel.call import Call, Deliver
from naiad._kernel.calls.rooms import Leaf
from naiad._kernel.ensembles.call import EnsembleCall
from naiad._kernel.ensembles.counting import EnsembleCounts
from naiad._kernel.ensembles.prepared import PreparedEnsemble
from naiad._kernel.ensembles.residence import Residence
from naiad._kernel.requests import RequestChecker
from naiad._kernel.served import ServedVersion, metadata_of
from naiad._kernel.stages import VersionStages
from naiad._kernel.statistics import VersionCounters
from naiad.backend import ModelContext
from naiad.devices import Device
from naiad.ensembles import Composition
from naiad.errors import ShuttingDownError, UnsupportedError
from naiad.reports import InstanceReport, ModelMetadata, ModelStatistics, Readiness
from naiad.trace_events import record_arrival
from naiad.types import Request
from naiad_config import ModelConfig, ModelTransactionPolicy

_LEAVING = "leaving"
"""A request that is over, and waits for nothing, but has not yet left its room to another."""


class EnsembleVersion:
    """Serves an ensemble with the versions of its models that served when it was bound. For the event loop's thread.

    `steps` are these versions, which outlive it. When one of them is replaced, another EnsembleVersion takes over, and
    goes on with the same `counters`. `leaving` gives the version that is about to end for a request that carries on a
    sequence there. `closed` is set when every request has been answered and it takes no more.
    """

    def __init__(
        self,
        prepared: PreparedEnsemble,
        context: ModelContext,
        composition: Composition,
        steps: Sequence[ServedVersion],
        counters: VersionCounters,
        leaving: Callable[[Request], ServedVersion | None],
    ) -> None:
        self.prepared = prepared
        self.config = _told(context.config, composition)
        self.name, self.version = self.config.name, context.version
        self.steps = tuple(steps)
        self.leaving = leaving
        self.composition = composition
        self.residence = Residence(context.config, steps)
        self.labels: Mapping[str, tuple[str, ...]] = _labels(prepared.labels, composition, steps)
        self.counters = counters
        self.counts = EnsembleCounts(counters, composition.decoupled)
        self._cache = prepared.front(context.version)
        if self._cache is not None:
            self._cache.count_with(counters)
        self.load_seconds = 0.0
        self.inflight = composition.backpressure()
        self.closed = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self._checker = RequestChecker(self.config)
        self._calls: set[EnsembleCall] = set()
        self._drained = asyncio.Event()
        self._drained.set()
        self.stages = VersionStages(prepared.stages(context), self.submit)

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> Call:
        """Check a request and submit its first steps. Raises what the checks, or one of these steps, refuse.

        Raises UnsupportedError when a model of it is decoupled and the caller cannot take several responses.
        """
        if self.composition.decoupled and not streams:
            raise UnsupportedError(
                f"this call takes exactly one response and doesn't support models with decoupled transaction policy, "
                f"such as '{self.name}'; ask it over ModelStreamInfer (gRPC), generate_stream (HTTP) or Server.stream"
            )
        if self._cache is not None and request.on_device is not None:
            request = replace(request, on_device=None)  # a cache keeps what lies in host memory
        batch_size, _ = self._checker.check(request)
        if request.trace is not None:
            record_arrival(request.trace, self.version, request, request)
        if self._cache is not None:
            return self._cache.submit(request, deliver, lambda hand: self._begin(request, hand, batch_size))
        return self._begin(request, deliver, batch_size)

    def _begin(self, request: Request, deliver: Deliver, batch_size: int) -> Call:
        call = EnsembleCall(self, request, deliver, batch_size)
        self._calls.add(call)
        self._drained.clear()
        try:
            call.begin()
        except BaseException:
            self.left(call)  # also where it had no time to leave
            raise
        return call

    def left(self, call: EnsembleCall) -> None:
        """That call is over."""
        self._calls.discard(call)
        if not self._calls:
            self._drained.set()

    def under_way(self, step: int) -> Mapping[Hashable, Sequence[Leaf]]:
        """The requests that the step has under way, each with all that it waits for."""
        found = {run: leaves for call in self._calls for run, leaves in call.under_way(step).items()}
        scheduling = self.config.ensemble_scheduling
        if scheduling is not None and len(found) < scheduling.max_inflight_requests:
            found[_LEAVING] = ()  # the rest is about to make room
        return found

    async def drain(self) -> None:
        """Return when every request taken in has been answered."""
        await self.stages.drained()
        if self._cache is not None:
            await self._cache.drained()
        await self._drained.wait()

    async def close(self, grace: float | None = None) -> bool:
        """Fail what is still open; there is nothing to wait for."""
        error = ShuttingDownError(
            f"Server is stopping, scheduler for model '{self.name}' has stopped accepting new inference requests"
        )
        self.stages.fail_all(error)
        if self._cache is not None:
            self._cache.fail_all(error)
        for call in list(self._calls):
            call.fail(error)
        self.closed.set()
        return True

    def readiness(self) -> Readiness:
        """Ready while every model of it is; the reasons name those that are not, and what is wrong with the others."""
        found = [(index, step, step.readiness()) for index, step in enumerate(self.steps)]
        reasons = tuple(
            f"step {index}, model '{step.name}': {reason}" for index, step, each in found for reason in each.reasons
        )
        return Readiness(all(each.ready for _, _, each in found), reasons)

    def instances(self) -> tuple[InstanceReport, ...]:
        """None: its models have theirs."""
        return ()

    def input_devices(self, name: str) -> frozenset[Device]:
        """Those of the steps that read that input, unless a cache stands before them."""
        return frozenset() if self._cache is not None else self.residence.input_devices(name)

    @property
    def waiting(self) -> int:
        """How many requests wait because a step has no room for them; others wait at the models."""
        return sum(call.is_waiting for call in self._calls)

    @property
    def outstanding(self) -> int:
        """How many requests are not over."""
        return len(self._calls) + self.stages.outstanding + (self._cache.waiting if self._cache is not None else 0)

    def statistics(self) -> ModelStatistics:
        """The counters as they stand."""
        return self.counters.report(self.name, self.version, ())

    @cached_property
    def metadata(self) -> ModelMetadata:
        """The ensemble as clients see it, with this version alone."""
        return metadata_of(self.config, self.version)


def _told(config: ModelConfig, composition: Composition) -> ModelConfig:
    """The configuration as it is shown: decoupled where one of the models is, and told so either way."""
    return replace(config, model_transaction_policy=ModelTransactionPolicy(decoupled=composition.decoupled))


def _labels(
    own: Mapping[str, tuple[str, ...]], composition: Composition, steps: Sequence[ServedVersion]
) -> dict[str, tuple[str, ...]]:
    """The labels of each output: its own, else those of the model that produces it."""
    found = dict(own)
    for composed, step in zip(composition.steps, steps, strict=True):
        for output, name in composed.outputs.items():
            if output not in found and name in step.labels:
                found[output] = step.labels[name]
    return found
