"""The cache in front of one model version: what it has is answered without the model, what it has not is kept."""

import asyncio
import functools
from collections import deque
from time import monotonic, monotonic_ns

from naiad._kernel.caching.counters import CacheCounters
from naiad._kernel.caching.keeping import LARGE, Keeper
from naiad._kernel.caching.keys import KeyMaker, size
from naiad._kernel.caching.lookups import Lookup, Send
from naiad._kernel.caching.opened import OpenedCache
from naiad._kernel.caching.ordering import Order
from naiad._kernel.caching.tracing import tell_lookup
from naiad._kernel.call import Call, Deliver
from naiad._kernel.statistics import FailureReason, VersionCounters
from naiad._kernel.threads import runs_here
from naiad.cache import CachedResponse
from naiad.errors import DeadlineExceededError, NaiadError
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.servables import InflightRequest
from naiad.types import Request, Response, Tensor

PATIENCE = 2.0
"""Seconds after which a cache that has not answered is not awaited any more."""
_LONG = 0.5
"""Seconds that a cache should not take; where a request's own deadline passes after that, it counts against it."""


class CacheFront:
    """Stands before the queue of a model version, or before an ensemble. For the event loop's thread.

    `generation` tells the loads of the version apart. With `ordered` answers leave in the order of the requests, hits
    among them.
    """

    def __init__(
        self,
        cache: OpenedCache,
        name: str,
        version: int,
        generation: bytes,
        *,
        ordered: bool = False,
        summaries: bool = False,
    ) -> None:
        self.counters = CacheCounters(summaries)
        self._cache = cache
        self._name, self._version = name, version
        self._keys = KeyMaker(name, version, generation)
        self._keeper = Keeper(cache, name, self.counters)
        self._order = Order() if ordered else None
        self._counts = VersionCounters()
        self._loop = asyncio.get_running_loop()
        self._waiting: set[Lookup] = set()
        self._nobody_waits = asyncio.Event()
        self._nobody_waits.set()
        self._landed: deque[Lookup] = deque()
        self._landing = False

    def count_with(self, counters: VersionCounters) -> None:
        """Count requests there, and what the cache does for them; where another front did so, this one goes on."""
        self._counts = counters
        if counters.cache is None:
            counters.cache = self.counters
        self.counters = self._keeper.counters = counters.cache

    @property
    def waiting(self) -> int:
        """How many requests wait for the cache."""
        return len(self._waiting)

    def submit(self, request: Request, deliver: Deliver, send: Send) -> InflightRequest:
        """Answer a checked request from the cache, or `send` it on and keep its answer. Raises what `send` raises.

        Nothing is delivered before this returns.
        """
        if self._order is not None:
            return self._order.submit(request, deliver, lambda hand: self._submit(request, hand, send))
        return self._submit(request, deliver, send)

    async def drained(self) -> None:
        """Return when no request waits for the cache."""
        await self._nobody_waits.wait()

    def fail_all(self, error: NaiadError) -> None:
        """Fail every request that waits for the cache."""
        for lookup in list(self._waiting):
            self._fail(lookup, error, FailureReason.OTHER)

    def _submit(self, request: Request, deliver: Deliver, send: Send) -> InflightRequest:
        started_ns = monotonic_ns()
        byte_size = size(request)
        if byte_size is None or (self._cache.breaker.is_open and not self._cache.breaker.allows(started_ns / 1e9)):
            return send(deliver)
        if byte_size >= LARGE:
            lookup = Lookup(self, request, deliver, send, b"", started_ns)
            call = self._wait_for(lookup)
            making = self._loop.run_in_executor(self._cache.threads, self._keys.key, request)
            making.add_done_callback(functools.partial(self._look_up_later, lookup))
            return call
        lookup = Lookup(self, request, deliver, send, self._keys.key(request), started_ns)
        self._cache.lookup(lookup.key, lookup.answer)
        if lookup.answered and lookup.found is None:
            self.missed(lookup)
            return lookup.send()
        call = self._wait_for(lookup)
        if lookup.answered:
            self._loop.call_soon(lookup.go_on)
        return call

    def _look_up_later(self, lookup: Lookup, making: "asyncio.Future[bytes]") -> None:
        if lookup.call is None:  # the caller has left
            return
        if making.cancelled() or making.exception() is not None:
            self._cache.complain("the key of a request to model '%s' could not be made", self._name)
            lookup.answer(None)
            return
        lookup.key = making.result()
        self._cache.lookup(lookup.key, lookup.answer)

    def _wait_for(self, lookup: Lookup) -> Call:
        call = lookup.wait()
        self._waiting.add(lookup)
        self._nobody_waits.clear()
        if not lookup.answered:
            deadline = lookup.request.deadline
            patience = PATIENCE if deadline is None else max(0.0, min(PATIENCE, deadline - monotonic()))
            lookup.timer = self._loop.call_later(patience, self._lose_patience, lookup)
        return call

    def _lose_patience(self, lookup: Lookup) -> None:
        deadline = lookup.request.deadline
        if deadline is not None and deadline <= monotonic():
            waited = (monotonic_ns() - lookup.started_ns) / 1e9
            if waited >= _LONG:
                self._cache.timed_out(lookup.started_ns / 1e9, monotonic())
            waiting = f"the request to model '{self._name}' still waited for the cache after {waited:.3f} s"
            self._fail(lookup, DeadlineExceededError(f"Deadline Exceeded: {waiting}"), FailureReason.REJECTED)
            return
        self._cache.complain("cache '%s' has not answered for %g s; the model is asked", self._cache.name, PATIENCE)
        self._cache.timed_out(lookup.started_ns / 1e9, monotonic())
        lookup.expired = True
        lookup.answer(None)

    def _fail(self, lookup: Lookup, error: NaiadError, reason: FailureReason) -> None:
        self.over(lookup)
        self._counts.failed(1, monotonic_ns() - lookup.started_ns, reason)
        lookup.answered = True
        lookup.conclude(error)

    # What lookups say

    def landed(self, lookup: Lookup) -> None:
        """The cache has answered at once, on the event loop, or on a thread; answers of a thread share a wake-up."""
        if self._cache.breaker.timeouts and not lookup.expired:
            self._cache.answered()
        if runs_here(self._loop):
            if lookup.call is not None:
                lookup.go_on()
            return
        self._landed.append(lookup)
        if not self._landing:
            self._landing = True
            try:
                self._loop.call_soon_threadsafe(self._land)
            except RuntimeError:  # the event loop has ended, and with it whoever waited
                return

    def _land(self) -> None:
        self._landing = False
        while self._landed:
            self._landed.popleft().go_on()

    def hit(self, lookup: Lookup, cached: CachedResponse) -> Response | None:
        """The response to the request, with its own id; None for a value that no response can be made of."""
        try:
            response = self._response(lookup.request, cached)
        except BaseException as error:  # noqa: BLE001 - a plugin may give anything, and the model can answer without it
            raise_interrupt(error)
            self._cache.complain(
                "cache '%s' gave a wrong value for model '%s': %s; the model is asked",
                self._cache.name,
                self._name,
                describe_error(error),
            )
            return None
        request = lookup.request
        now_ns = monotonic_ns()
        self.counters.hit(lookup.lookup_ns)
        self._counts.hit(now_ns - lookup.started_ns)
        if request.trace is not None:
            tell_lookup(request.trace, lookup.started_ns, lookup.looked_up_ns, hit=True)
        return response

    def _response(self, request: Request, cached: CachedResponse) -> Response:
        if not isinstance(cached, CachedResponse):
            raise TypeError(f"it is of type {type(cached).__name__}, and must be a CachedResponse")
        outputs = {each.name: Tensor(each.name, each.datatype, each.shape, each.payload) for each in cached.outputs}
        parameters = dict(cached.parameters) if cached.parameters else {}
        return Response(self._name, self._version, request.id, outputs, parameters)

    def missed(self, lookup: Lookup) -> None:
        """Count it."""
        self.counters.missed(lookup.lookup_ns)
        if lookup.request.trace is not None:
            tell_lookup(lookup.request.trace, lookup.started_ns, lookup.looked_up_ns, hit=False)

    def left(self, lookup: Lookup) -> None:
        """Count it."""
        self._counts.cancelled(monotonic_ns() - lookup.started_ns, executing=False)

    def over(self, lookup: Lookup) -> None:
        """Forget it."""
        if lookup.timer is not None:
            lookup.timer.cancel()
            lookup.timer = None
        self._waiting.discard(lookup)
        if not self._waiting:
            self._nobody_waits.set()

    def keep(self, lookup: Lookup, outcome: Response) -> None:
        """As `Keeper.keep`."""
        self._keeper.keep(lookup, outcome)
