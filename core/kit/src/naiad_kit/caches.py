"""The contract of a response cache: it keeps responses under the keys that naiad-cache makes.

A plugin offers a `naiad.cache.CacheFactory` by the hook `naiad_caches`; naiad-cache opens the one that `--cache-config`
names.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np

from naiad.errors import UsageError
from naiad.types import ParameterValue, Response
from naiad_tensors.tensors import Tensor

_BYTES_OF_RESPONSE = 400
_BYTES_OF_TENSOR = 380
_BYTES_OF_PARAMETER = 200
_BYTES_OF_ELEMENT = 41
"""The memory of Python's own objects, measured with tracemalloc on CPython 3.11 and rounded up."""
_NONE: Mapping[str, ParameterValue] = MappingProxyType({})


@dataclass(slots=True)
class CachedResponse:
    """A response in a cache: its arrays are read-only, and nothing else refers to them.

    `byte_size` is an estimate of its memory, Python's own objects included. `of`, `copied` and `over` make one. It is
    not frozen, for the reason in `naiad.types`, and is never changed.
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
        """A response over these outputs, whose arrays are read-only and have no other user."""
        size = _BYTES_OF_RESPONSE + sum(map(_bytes_of, outputs)) + _bytes_of_parameters(parameters)
        return cls(outputs, parameters, size)


@dataclass(frozen=True, slots=True)
class CacheReport:
    """The counters of a cache since it was opened, and its size; None for a value that needs a call to another process.

    `evictions` are responses that were removed for others, `failures` the lookups and insertions that failed, those of
    too large responses included; a lookup that failed is a miss. `byte_size` and `capacity` are bytes.
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

    `shared` says that other servers, or this one after a restart, may find the responses. No response of more than
    `largest` bytes is inserted. Responses may be kept and returned as they are: they are never changed.
    """

    shared: bool
    largest: float

    def lookup(self, key: bytes, deliver: Callable[[CachedResponse | None], None]) -> None:
        """Call `deliver` once with the response of that key, or None, before this returns or later on any thread."""

    def insert(self, key: bytes, response: CachedResponse) -> None:
        """Keep the response under that key, in place of an earlier one, if possible."""

    def report(self) -> CacheReport:
        """The counters now."""

    def close(self) -> None:
        """Free everything. Called once, on any thread, after the last call; may take a second."""


def check_settings(cache: str, settings: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Raise UsageError for a setting of that cache that is not known."""
    for name in settings:
        if name not in known:
            raise UsageError(
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
