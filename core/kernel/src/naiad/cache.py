"""The contract of a response cache: it keeps the answers of models under keys that the kernel makes.

A plugin offers a `CacheFactory` by the hook `naiad_caches`; the server opens the one that `--cache-config` names.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad.types import ParameterValue, Response, Tensor

_BYTES_OF_RESPONSE = 400
_BYTES_OF_TENSOR = 380
_BYTES_OF_PARAMETER = 200
_BYTES_OF_ELEMENT = 41
"""What Python's own objects take beside their content, as measured with tracemalloc on CPython 3.11, rounded up."""
_NONE: Mapping[str, ParameterValue] = MappingProxyType({})


@dataclass(slots=True)
class CachedResponse:
    """A model's answer as a cache keeps it: nobody else holds its arrays, and nobody can write to them.

    `byte_size` is about the memory that it takes, Python's own objects included. Made by `of`, `copied` or `over`. Not
    frozen, for the reason told in `naiad.types`; nobody changes one.
    """

    outputs: tuple[Tensor, ...]
    parameters: Mapping[str, ParameterValue]
    byte_size: int

    @classmethod
    def of(cls, response: Response) -> "CachedResponse":
        """A copy of a response whose outputs are numpy arrays."""
        return cls.copied(response.outputs.values(), response.parameters)

    @classmethod
    def copied(cls, outputs: Iterable[Tensor], parameters: Mapping[str, ParameterValue] = _NONE) -> "CachedResponse":
        """A copy of these outputs, which are numpy arrays, and parameters."""
        copies, size = [], _BYTES_OF_RESPONSE
        for each in outputs:
            tensor = Tensor(each.name, each.datatype, each.shape, _read_only_copy(each.array))
            copies.append(tensor)
            size += _bytes_of(tensor)
        kept = dict(parameters) if parameters else _NONE
        return cls(tuple(copies), kept, size + _bytes_of_parameters(kept))

    @classmethod
    def over(cls, outputs: tuple[Tensor, ...], parameters: Mapping[str, ParameterValue] = _NONE) -> "CachedResponse":
        """The response with these outputs, whose arrays are read-only and nobody else's."""
        size = _BYTES_OF_RESPONSE + sum(map(_bytes_of, outputs)) + _bytes_of_parameters(parameters)
        return cls(outputs, parameters, size)


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What a cache has done since it was opened, and what it holds; None for what it cannot tell without asking.

    `evictions` are responses that made room for others, `failures` lookups and insertions that it could not do, too
    large responses among them; a lookup that failed is a miss to whoever asked. `byte_size` and `capacity` are bytes.
    """

    lookups: int = 0
    hits: int = 0
    insertions: int = 0
    evictions: int = 0
    failures: int = 0
    entries: int | None = None
    byte_size: int | None = None
    capacity: int | None = None


class Cache(Protocol):
    """Keeps responses by key. Every method but `close` is called on one thread and must return at once.

    `shared` says that others may find what is inserted here: other servers, or this one when it was started again.
    A response whose `byte_size` passes `largest` is not even offered to it. Responses may be kept and handed out as
    they are: nobody writes to them.
    """

    shared: bool
    largest: float

    def lookup(self, key: bytes, found: Callable[[CachedResponse | None], None]) -> None:
        """Call `found` once with what is kept under the key, or None, also where that cannot be known.

        It may be called before this returns, or later, on any thread: a cache that has to ask somebody else does so on
        a thread of its own.
        """
        ...

    def insert(self, key: bytes, response: CachedResponse) -> None:
        """Keep the response under that key in place of what is there, if it can be kept; nobody waits for it."""
        ...

    def report(self) -> CacheReport:
        """The counters as they stand."""
        ...

    def close(self) -> None:
        """Free everything. Called once, on any thread, when nobody asks any more; may take a second."""
        ...


class CacheCounters(Protocol):
    """What a cache does for one model version: hits and misses, in nanoseconds, for the statistics and metrics.

    `misses_in_a_row` are the misses since the last hit.
    """

    misses_in_a_row: int

    def hit(self, lookup_ns: int) -> None:
        """A lookup found something."""
        ...

    def missed(self, lookup_ns: int) -> None:
        """A lookup found nothing."""
        ...

    def inserted(self, lookup_ns: int, insertion_ns: int) -> None:
        """The answer to a request that was missed was handed to the cache."""
        ...


@runtime_checkable
class CacheFactory(Protocol):
    """Opens caches of one kind. `name` is how `--cache-config` asks for it (`local`)."""

    name: str

    def open(self, settings: Mapping[str, str]) -> Cache:
        """A cache with these settings of `--cache-config`. Must not wait for anybody.

        Raises InvalidArgumentError for a setting that is missing, unknown or makes no sense.
        """
        ...


def check_settings(cache: str, settings: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Raise InvalidArgumentError for a setting of that cache which is not among the known ones."""
    for name in settings:
        if name not in known:
            raise InvalidArgumentError(
                f"cache '{cache}' has no setting '{name}'; its settings are {', '.join(known)} "
                f"(--cache-config {cache},{known[0]}=...)"
            )


def _bytes_of(tensor: Tensor) -> int:
    array = tensor.array
    size = _BYTES_OF_TENSOR + array.nbytes
    if tensor.datatype == "BYTES":
        size += sum(map(len, array.ravel().tolist())) + _BYTES_OF_ELEMENT * array.size
    return size


def _bytes_of_parameters(parameters: Mapping[str, ParameterValue]) -> int:
    if not parameters:
        return 0
    texts = [value for value in parameters.values() if isinstance(value, str)]
    return _BYTES_OF_PARAMETER * len(parameters) + sum(map(len, texts))


def _read_only_copy(array: np.ndarray) -> np.ndarray:
    if array.dtype.hasobject:
        copy = array.copy()
        copy.flags.writeable = False
        return copy.view()  # a view of what is not writeable cannot be made so
    return np.ndarray(array.shape, array.dtype, array.tobytes())


UNLIMITED = math.inf
"""For `Cache.largest`."""
