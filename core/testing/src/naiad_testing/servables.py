"""Fake servable factory and plugin: for tests of how servables are bound to models and hold leases."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from naiad.backend import ModelContext
from naiad.errors import ConfigError, Problem
from naiad.hookspecs import hookimpl
from naiad.in_flight import InflightRequest, Occupancy
from naiad.reports import InstanceReport, Readiness
from naiad.servables import (
    ConfiguredModels,
    Lease,
    ModelResolver,
    Servable,
    ServableContext,
    ServableFactory,
)
from naiad.server import Deliver
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_statistics.reports import ModelStatistics
from naiad_tensors.devices import Device

__all__ = ["FakeServables"]


class FakeServables:
    """Serves a configuration with the platform `name` by the model that its parameter `target` names.

    `bound` has the configurations that were bound, one for each binding; `drained` keeps them from draining until set.
    `occupancy` answers for every alias; by default none limits anything, as the instances are those of the target.
    """

    def __init__(self, name: str = "alias", occupancy: Callable[[], Sequence[Occupancy]] = tuple) -> None:
        self.name = name
        self.occupancy = occupancy
        self.bound: list[str] = []
        self.drained: asyncio.Event | None = None

    @hookimpl
    def naiad_servables(self) -> Sequence[ServableFactory]:
        """The factory itself."""
        return [self]

    def claims(self, config: ModelConfig) -> bool:
        """Whether the platform is its own."""
        return config.platform == self.name

    def complete(self, config: ModelConfig) -> ModelConfig:
        """The configuration as it is."""
        return config

    def prepare(self, context: ServableContext) -> "_Prepared":
        """An alias that is ready to be bound."""
        return _Prepared(self, context)


class _Prepared:
    def __init__(self, factory: FakeServables, context: ServableContext) -> None:
        self._factory = factory
        self._context = context
        self._target = context.config.parameters["target"].string_value
        self.dependencies = (self._target,)

    def bind(self, models: ModelResolver, earlier: Mapping[int, Servable]) -> dict[int, Servable]:
        if not models.serves(self._target):
            raise ConfigError([Problem(f"the target does not serve.{models.why_not(self._target)}", "parameters")])
        return {each.version: self._alias(each, models.lease(self._target)) for each in self._context.versions}

    def check(self, models: ConfiguredModels) -> ModelConfig:
        if not models.versions(self._target):
            raise ConfigError([Problem(f"there is no model '{self._target}'", "parameters")])
        return self._context.config

    def _alias(self, version: ModelContext, lease: Lease) -> "_Alias":
        self._factory.bound.append(version.config.name)
        return _Alias(self._factory, version, lease, self._context)


class _Alias:
    """Passes every request on."""

    def __init__(self, factory: FakeServables, version: ModelContext, lease: Lease, context: ServableContext) -> None:
        self._factory = factory
        self.config = version.config
        self.name, self.version = version.config.name, version.version
        self.counters = context.counters()
        self.stages = context.stages(version, self.counters, self.submit, self._proceed)
        self.labels = lease.servable.labels
        self._lease = lease

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> InflightRequest:
        proceed = self.stages.checked or self._proceed
        return proceed(request, deliver, streams)

    def _proceed(self, request: Request, deliver: Deliver, streams: bool) -> InflightRequest:
        target = self._lease.servable
        return target.submit(replace(request, model_name=target.name), deliver, streams)

    def occupancy(self) -> Sequence[Occupancy]:
        return self._factory.occupancy()

    async def drain(self) -> None:
        """The requests are those of the target: there is nothing to wait for but what the test says."""
        if self._factory.drained is not None:
            await self._factory.drained.wait()

    async def close(self, grace: float | None = None) -> bool:
        self._lease.release()
        return True

    def readiness(self) -> Readiness:
        return self._lease.servable.readiness()

    def instances(self) -> tuple[InstanceReport, ...]:
        return ()

    def input_devices(self, name: str) -> frozenset[Device]:
        return self._lease.servable.input_devices(name)

    @property
    def waiting(self) -> int:
        return 0

    @property
    def outstanding(self) -> int:
        return 0

    def statistics(self) -> ModelStatistics:
        return self.counters.report(self.name, self.version, ())
