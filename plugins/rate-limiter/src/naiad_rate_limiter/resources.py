"""Resources of the rate limiter: the needs of executions, the pools, and explicit limits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from naiad.errors import InvalidArgumentError

if TYPE_CHECKING:
    from naiad.backend import Placement

GLOBAL, CPU = "global", "cpu"
"""The device of a resource that the whole server shares, and the one of instances that are on no GPU."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Where the units of a resource are counted: `device` is `global`, `cpu` or `gpu_<number>`."""

    resource: str
    device: str


@dataclass(frozen=True, slots=True)
class Needs:
    """The units that one execution takes, by pool; a slot with twice the `priority` executes half as often."""

    units: Mapping[Pool, int]
    priority: int = 1


@dataclass(frozen=True, slots=True)
class ResourceLimit:
    """An explicit limit of a resource, on the device of that number; None: on every device, or in the global pool."""

    name: str
    count: int
    device: int | None = None

    @classmethod
    def read(cls, text: str) -> "ResourceLimit":
        """From `NAME:COUNT` or `NAME:COUNT:DEVICE`. Raises ValueError saying what is wrong."""
        name, *numbers = text.split(":")
        if not name or len(numbers) not in (1, 2) or not all(each.isascii() and each.isdigit() for each in numbers):
            raise ValueError(f"'{text}' must be NAME:COUNT or NAME:COUNT:DEVICE, with whole numbers, such as R1:10:0")
        count, *device = map(int, numbers)
        if count < 1:
            raise ValueError(f"'{text}' leaves nothing of resource '{name}'; the count must be at least 1")
        return cls(name, count, device[0] if device else None)


def needs_of(placement: "Placement") -> Needs:
    """What an execution of that instance takes; no units when its group limits nothing."""
    limiter = placement.group.rate_limiter
    if limiter is None:
        return Needs({})
    here = f"gpu_{placement.device}" if placement.kind == "GPU" else CPU
    units: dict[Pool, int] = {}
    for resource in limiter.resources:
        pool = Pool(resource.name, GLOBAL if resource.global_ else here)
        units[pool] = max(resource.count, units.get(pool, 0))
    return Needs({pool: count for pool, count in units.items() if count}, max(1, limiter.priority))


def capacities(needs: Iterable[Needs], limits: Sequence[ResourceLimit]) -> dict[Pool, int]:
    """The units of each pool: its explicit limit, else the most that one execution takes.

    Raises InvalidArgumentError when a limit is less than that, or a resource is counted both on devices and globally.
    """
    required: dict[Pool, int] = {}
    for each in needs:
        for pool, count in each.units.items():
            required[pool] = max(count, required.get(pool, 0))
    _refuse_two_scopes(required)
    capacity = {}
    for pool, least in required.items():
        limit = _limit(pool, limits)
        if limit is not None and limit < least:
            where = "" if pool.device == GLOBAL else f" on {pool.device}"
            raise InvalidArgumentError(
                f'Resource count for "{pool.resource}" is limited to {limit} which will prevent scheduling of one or '
                f"more model instances, the minimum required count is {least}{where}; raise --rate-limit-resource, or "
                "let the instance_group ask for less"
            )
        capacity[pool] = least if limit is None else limit
    return capacity


def _limit(pool: Pool, limits: Sequence[ResourceLimit]) -> int | None:
    """The explicit limit of a pool: the largest for its device, else the largest for every device."""
    named = [limit for limit in limits if limit.name == pool.resource]
    if pool.device == GLOBAL:
        return max((limit.count for limit in named), default=None)
    number = 0 if pool.device == CPU else int(pool.device.removeprefix("gpu_"))
    own = [limit.count for limit in named if limit.device == number]
    return max(own or [limit.count for limit in named if limit.device is None], default=None)


def _refuse_two_scopes(pools: Iterable[Pool]) -> None:
    scopes: dict[str, bool] = {}
    for pool in pools:
        if scopes.setdefault(pool.resource, pool.device == GLOBAL) != (pool.device == GLOBAL):
            raise InvalidArgumentError(
                f'Resource "{pool.resource}" is present as both global and device-specific resource in the model '
                "configuration. Another model that is loaded counts it the other way; give it one scope everywhere"
            )
