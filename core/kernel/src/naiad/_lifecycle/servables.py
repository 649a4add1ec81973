"""Servables as the kernel serves them, and calls of their code: whatever that raises is logged and contained."""

from typing import Protocol

from naiad._engine.containment import contained, logged
from naiad._engine.statistics import VersionCounters
from naiad.errors import InternalError, NaiadError
from naiad.reports import InstanceReport, ModelStatistics, Readiness
from naiad.servables import Servable


class ServedVersion(Servable, Protocol):
    """One version from its load to its last response: a backend's, or one that a servable factory serves."""

    @property
    def counters(self) -> VersionCounters:
        """What it has done since it was loaded."""
        ...


def label(version: ServedVersion) -> str:
    """The version in a message."""
    return f"model '{version.name}' version {version.version}"


def loading(name: str) -> contained:
    """A block that loads a model, or prepares that; the reason of an InternalError is all that the error says."""
    return contained(f"loading model '{name}'", InternalError, name)


def readiness_of(version: ServedVersion) -> Readiness:
    """Whether it can serve; one whose code raises is not ready."""
    try:
        with contained(f"checking the readiness of {label(version)}", model=version.name):
            return version.readiness()
    except NaiadError as error:
        return Readiness(False, (str(error),))


def instances_of(version: ServedVersion) -> tuple[InstanceReport, ...]:
    """Its instances. Raises InternalError where the servable raises."""
    with contained(f"listing the instances of {label(version)}", model=version.name):
        return version.instances()


def statistics_of(version: ServedVersion) -> list[ModelStatistics]:
    """Its counters; none where the servable raises."""
    with logged(f"reading the statistics of {label(version)}", model=version.name):
        return [version.statistics()]
    return []


def has_requests(version: ServedVersion) -> bool:
    """Whether it has requests that are not over; False where the servable raises."""
    with logged(f"counting the requests of {label(version)}", model=version.name):
        return bool(version.outstanding)
    return False


async def drain(version: ServedVersion) -> None:
    """Return when it has answered all that was taken in, or raises."""
    with logged(f"draining {label(version)}", model=version.name):
        await version.drain()


async def close(version: ServedVersion, grace: float | None = None) -> bool:
    """Free it; whether that ended within `grace` seconds. False where the servable raises."""
    with logged(f"closing {label(version)}", model=version.name):
        return await version.close(grace)
    return False
