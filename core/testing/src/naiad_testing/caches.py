"""Conformance check of a response cache, and a fake cache; both published."""

import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic, sleep

import numpy as np

from naiad.cache import CacheFactory
from naiad.hookspecs import hookimpl
from naiad.types import ParameterValue, Response
from naiad_kit.caches import Cache, CachedResponse, CacheReport
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.tensors import Tensor
from naiad_testing.simulation import ContractBroken

__all__ = ["ContractBroken", "FakeCache", "check_cache", "sample_responses"]

_Deliver = Callable[[CachedResponse | None], None]


class FakeCache:
    """A cache in a dict, its own factory and its own plugin: pass it to `Server(plugins=[...])`, ask for `fake`.

    While it is held, answers to lookups wait; `release` gives them on the thread that calls it. Put an error into
    `failure` to have it raised by everything. `events` lists what was called, as words; `shared` and `largest` are as
    in `Cache`.
    """

    name = "fake"

    def __init__(self) -> None:
        self.shared = False
        self.largest = float("inf")
        self.failure: Exception | None = None
        self.events: list[str] = []
        self.settings: Mapping[str, str] = {}
        self.entries: dict[bytes, CachedResponse] = {}
        self._held: list[tuple[bytes, _Deliver]] | None = None
        self._hits = 0

    @hookimpl
    def naiad_caches(self) -> Sequence[CacheFactory]:
        """The cache itself."""
        return [self]

    def open(self, settings: Mapping[str, str]) -> "FakeCache":
        """The cache itself, once more."""
        self.settings = settings
        return self

    def hold(self) -> None:
        """Keep the answers to lookups back from now on."""
        self._held = []

    def release(self) -> None:
        """Answer the lookups that were held back, in order, and all others at once."""
        held, self._held = self._held or [], None
        for key, deliver in held:
            self._answer(key, deliver)

    def lookup(self, key: bytes, deliver: _Deliver) -> None:
        """What is in the dict, now or when it is released."""
        self.events.append("lookup")
        if self.failure is not None:
            raise self.failure
        if self._held is None:
            self._answer(key, deliver)
        else:
            self._held.append((key, deliver))

    def insert(self, key: bytes, response: CachedResponse) -> None:
        """Put it into the dict."""
        self.events.append("insert")
        if self.failure is not None:
            raise self.failure
        self.entries[key] = response

    def report(self) -> CacheReport:
        """How often it was asked, and what it holds."""
        if self.failure is not None:
            raise self.failure
        held = sum(response.byte_size for response in self.entries.values())
        lookups = self.events.count("lookup")
        return CacheReport(lookups=lookups, hits=self._hits, entries=len(self.entries), byte_size=held)

    def close(self) -> None:
        """Note it, and forget everything."""
        self.events.append("close")
        self.entries.clear()

    def _answer(self, key: bytes, deliver: _Deliver) -> None:
        response = self.entries.get(key)
        self._hits += response is not None
        deliver(response)


def check_cache(open_cache: Callable[[], Cache], patience: float = 5.0) -> None:
    """Hold caches fresh from `open_cache` against the contract. Raises ContractBroken (an AssertionError) saying where.

    A key that was not inserted has nothing; what was inserted is found within `patience` seconds, the same in every
    datatype, shape and kind of parameter, with arrays that cannot be written to, and what is inserted again replaces
    it; every lookup is answered once, also after the cache was closed; and the counters are right. Keys are random:
    others may use the same server at the same time.
    """
    cache = open_cache()
    lookups = _Lookups(cache, patience)
    try:
        inserted = _check_answers(cache, lookups)
        lookups.check_report(cache.report())
    finally:
        cache.close()
    _expect(lookups.answer(inserted) is None, "a closed cache still finds something")
    lookups.check_answered_once()


def sample_responses() -> list[CachedResponse]:
    """Responses of every datatype and of odd shapes, with every kind of parameter."""
    chance = np.random.default_rng(7)
    tensors = []
    for wire in TENSOR_TYPES:
        for number, shape in enumerate(((), (0,), (3,), (2, 0, 4), (2, 3, 4))):
            tensors.append(_tensor(f"{wire} {number}", wire, shape, chance))
    parameters: dict[str, ParameterValue] = {"b": True, "i": 1, "f": 1.0, "s": "ü\0", "large": -(2**63)}
    together = {tensor.name: tensor for tensor in tensors}
    responses = [Response("m", 1, "", {tensor.name: tensor}) for tensor in tensors]
    return [CachedResponse.of(each) for each in (*responses, Response("m", 1, "", together, parameters))]


def _tensor(name: str, wire: str, shape: tuple[int, ...], chance: np.random.Generator) -> Tensor:
    count = int(np.prod(shape))
    if wire == "BYTES":
        elements = np.empty(count, dtype=object)
        elements[:] = [chance.bytes(int(chance.integers(0, 5))) for _ in range(count)]
        return Tensor(name, wire, shape, elements.reshape(shape))
    dtype = np.dtype(TENSOR_TYPES[wire].dtype)
    if dtype.kind in "iu":
        span = np.iinfo(dtype)
        return Tensor(name, wire, shape, np.asarray(chance.integers(span.min, span.max, shape, dtype, endpoint=True)))
    return Tensor(name, wire, shape, np.asarray(chance.integers(0, 2 if wire == "BOOL" else 100, shape)).astype(dtype))


def _check_answers(cache: Cache, lookups: "_Lookups") -> bytes:
    """Insert and look up; returns a key that was inserted."""
    _expect(lookups.answer(_random_key()) is None, "a key that was not inserted finds something")
    keys = {_random_key(): response for response in sample_responses()}
    for key, response in keys.items():
        cache.insert(key, response)
        lookups.expect_found(key, response)
    replaced, first, last = _random_key(), *list(keys.values())[-2:]
    for response in (first, last):
        cache.insert(replaced, response)
        lookups.expect_found(replaced, response)
    return replaced


def _differs(cached: CachedResponse, expected: CachedResponse) -> str:
    """In what, "" for in nothing."""
    described = [(tensor.name, tensor.datatype, tensor.shape, tensor.array.dtype) for tensor in cached.outputs]
    if described != [(tensor.name, tensor.datatype, tensor.shape, tensor.array.dtype) for tensor in expected.outputs]:
        return f"the outputs are {described}"
    for one, other in zip(cached.outputs, expected.outputs, strict=True):
        if one.array.shape != other.array.shape or one.array.tolist() != other.array.tolist():
            return f"output '{one.name}' is {one.array!r}"
    kinds = [{name: (type(value), value) for name, value in each.parameters.items()} for each in (cached, expected)]
    return "" if kinds[0] == kinds[1] else f"the parameters are {dict(cached.parameters)}"


class _Lookups:
    """The lookups of the check, with all their answers: one may come a second time later."""

    def __init__(self, cache: Cache, patience: float) -> None:
        self._cache = cache
        self._patience = patience
        self._answers: list[list[CachedResponse | None]] = []

    def answer(self, key: bytes) -> CachedResponse | None:
        """The first answer to a new lookup."""
        answers: list[CachedResponse | None] = []
        answered = threading.Event()

        def deliver(response: CachedResponse | None) -> None:
            answers.append(response)
            answered.set()

        self._answers.append(answers)
        self._cache.lookup(key, deliver)
        _expect(answered.wait(self._patience), f"a lookup was not answered within {self._patience:g} seconds")
        return answers[0]

    def expect_found(self, key: bytes, expected: CachedResponse) -> None:
        """Look up until the cache has it: one that is elsewhere takes a while."""
        until = monotonic() + self._patience
        cached = self.answer(key)
        while (cached is None or _differs(cached, expected)) and monotonic() < until:
            sleep(0.001)
            cached = self.answer(key)
        if cached is None:
            names = [tensor.name for tensor in expected.outputs]
            raise ContractBroken(f"a response with the outputs {names} was inserted and is not there")
        difference = _differs(cached, expected)
        _expect(not difference, f"a cached response differs from the inserted one: {difference}")
        for tensor in cached.outputs:
            _expect(not tensor.array.flags.writeable, f"the array of output '{tensor.name}' can be written to")

    def check_answered_once(self) -> None:
        """No lookup has been answered again by now."""
        most = max(map(len, self._answers))
        _expect(most == 1, f"a lookup was answered {most} times")

    def check_report(self, report: CacheReport) -> None:
        """The report counts these lookups and hits at least."""
        _expect(isinstance(report, CacheReport), f"report() answered {report!r}; it answers a CacheReport")
        hits = sum(answers[0] is not None for answers in self._answers)
        _expect(
            report.lookups >= len(self._answers) and report.lookups >= report.hits >= hits,
            f"after {len(self._answers)} lookups, {hits} of which found something, the report is {report}",
        )


def _random_key() -> bytes:
    return np.random.default_rng().bytes(32)


def _expect(holds: bool, message: str) -> None:
    if not holds:
        raise ContractBroken(message)
