"""Servables as the kernel serves them, and calls of their code: whatever that raises is logged and contained."""

from naiad.errors import InternalError, NaiadError
from naiad.foreign_errors import contained, logged
from naiad.in_flight import Occupancy
from naiad.reports import InstanceReport, Readiness
from naiad.servables import Servable
from naiad_statistics.reports import ModelStatistics


def label(version: Servable) -> str:
    """The version in a message."""
    return f"model '{version.name}' version {version.version}"


def loading(name: str) -> contained:
    """A block that loads a model, or prepares that; the reason of an InternalError is all that the error says."""
    return contained(f"loading model '{name}'", InternalError, name)


def readiness_of(version: Servable) -> Readiness:
    """Whether it can serve; one whose code raises is not ready."""
    try:
        with contained(f"checking the readiness of {label(version)}", model=version.name):
            return version.readiness()
    except NaiadError as error:
        return Readiness(False, (str(error),))


def instances_of(version: Servable) -> tuple[InstanceReport, ...]:
    """Its instances. Raises InternalError where the servable raises."""
    with contained(f"listing the instances of {label(version)}", model=version.name):
        return version.instances()


def statistics_of(version: Servable) -> list[ModelStatistics]:
    """Its counters; none where the servable raises."""
    with logged(f"reading the statistics of {label(version)}", model=version.name):
        return [version.statistics()]
    return []


def has_requests(version: Servable) -> bool:
    """Whether it has requests that are not over; False where the servable raises."""
    with logged(f"counting the requests of {label(version)}", model=version.name):
        return bool(version.outstanding)
    return False


def occupancy_of(version: Servable) -> list[Occupancy]:
    """Its limited resources that are in use; none where the servable raises."""
    with logged(f"reading the occupancy of {label(version)}", model=version.name):
        return [*version.occupancy()]
    return []


async def drain(version: Servable) -> None:
    """Return when it has answered all that was taken in, or raises."""
    with logged(f"draining {label(version)}", model=version.name):
        await version.drain()


async def close(version: Servable, grace: float | None = None) -> bool:
    """Free it; whether that ended within `grace` seconds. False where the servable raises."""
    with logged(f"closing {label(version)}", model=version.name):
        return await version.close(grace)
    return False
