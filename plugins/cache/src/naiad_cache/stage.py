"""The request stage of the response cache: answers hits without the model, and inserts the responses of misses."""

import asyncio
import functools
from collections import deque
from time import monotonic, monotonic_ns

from naiad.errors import DeadlineExceededError, NaiadError
from naiad.extend import HeldRequest, StageContext, Submit
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.server import Deliver, SubmittedRequest
from naiad.threads import on_event_loop
from naiad.types import Request, Response
from naiad_cache.keys import LARGE, KeyMaker, size
from naiad_cache.lookups import Lookup, record_lookup
from naiad_cache.opened import OpenedCache
from naiad_cache.ordering import Order
from naiad_cache.writing import CacheWriter
from naiad_kit.caches import CachedResponse
from naiad_tensors.tensors import Tensor

PATIENCE = 2.0
"""Seconds after which a cache that has not answered is not awaited any more."""
_LONG = 0.5
"""Seconds that a cache should not take; where a request's own deadline passes after that, it counts against it."""


class CacheStage:
    """The stage before the queue of a model version, or before an ensemble. For the event loop's thread.

    `generation` identifies one load of the version; a stage finds only responses that were kept under its own.
    Where the configuration preserves the order of requests, their responses leave in it, hits among them.
    """

    parameter = ""
    order = 100
    host_only = True

    def __init__(self, cache: OpenedCache, context: StageContext, generation: bytes) -> None:
        config = context.model.config
        self._cache = cache
        self._context = context
        self._name, self._version = config.name, context.model.version
        self._keys = KeyMaker(self._name, self._version, generation)
        self._counters, self._cache_counters = context.counters, context.counters.cache
        self._writer: CacheWriter
        self._is_ordered = config.dynamic_batching is not None and config.dynamic_batching.preserve_ordering
        self._waiting: set[Lookup] = set()
        self._none_waits = asyncio.Event()
        self._none_waits.set()
        self._landed: deque[Lookup] = deque()
        self._landing = False
        self._loop: asyncio.AbstractEventLoop
        self.hold = context.hold
        self.pass_on: Submit

    def wrap(self, submit: Submit) -> Submit:
        """The way of requests through the cache; nothing is delivered before it returns."""
        self._loop = asyncio.get_running_loop()
        self._writer = CacheWriter(self._cache, self._name, self._cache_counters)
        self.pass_on = submit
        return Order(self._context, self._submit).submit if self._is_ordered else self._submit

    @property
    def outstanding(self) -> int:
        """How many requests wait for the cache."""
        return len(self._waiting)

    async def drained(self) -> None:
        """Return when no request waits for the cache."""
        await self._none_waits.wait()

    def fail_all(self, error: NaiadError) -> None:
        """Fail every request that waits for the cache."""
        for lookup in list(self._waiting):
            self._counters.failed(monotonic_ns() - lookup.started_ns)
            self._fail(lookup, error)

    def _submit(self, request: Request, deliver: Deliver, streams: bool) -> SubmittedRequest:
        started_ns = monotonic_ns()
        byte_size = size(request)
        if byte_size is None or (self._cache.breaker.is_open and not self._cache.breaker.allows(started_ns / 1e9)):
            return self.pass_on(request, deliver, streams)
        if byte_size >= LARGE:
            lookup = Lookup(self, request, deliver, streams, b"", started_ns)
            held = self._wait_for(lookup)
            making = self._loop.run_in_executor(self._cache.threads, self._keys.key, request)
            making.add_done_callback(functools.partial(self._look_up_later, lookup))
            return held
        lookup = Lookup(self, request, deliver, streams, self._keys.key(request), started_ns)
        self._cache.lookup(lookup.key, lookup.answer)
        if lookup.answered and lookup.response is None:
            self.missed(lookup)
            return lookup.pass_on()
        held = self._wait_for(lookup)
        if lookup.answered:
            self._loop.call_soon(lookup.go_on)
        return held

    def _look_up_later(self, lookup: Lookup, making: "asyncio.Future[bytes]") -> None:
        if lookup.held is None:  # the caller has gone
            return
        if making.cancelled() or making.exception() is not None:
            self._cache.complain("the key of a request to model '%s' could not be made", self._name)
            lookup.answer(None)
            return
        lookup.key = making.result()
        if not lookup.answered:
            self._cache.lookup(lookup.key, lookup.answer)

    def _wait_for(self, lookup: Lookup) -> HeldRequest:
        held = lookup.wait()
        self._waiting.add(lookup)
        self._none_waits.clear()
        if not lookup.answered:
            deadline = lookup.request.deadline
            patience = PATIENCE if deadline is None else max(0.0, min(PATIENCE, deadline - monotonic()))
            lookup.timer = self._loop.call_later(patience, self._lose_patience, lookup)
        return held

    def _lose_patience(self, lookup: Lookup) -> None:
        deadline = lookup.request.deadline
        if deadline is not None and deadline <= monotonic():
            waited = (monotonic_ns() - lookup.started_ns) / 1e9
            if waited >= _LONG and lookup.key:
                self._cache.timed_out(lookup.started_ns / 1e9, monotonic())
            waiting = f"the request to model '{self._name}' still waited for the cache after {waited:.3f} s"
            self._counters.rejected(monotonic_ns() - lookup.started_ns)
            self._fail(lookup, DeadlineExceededError(f"Deadline Exceeded: {waiting}"))
            return
        if lookup.key:  # else a thread still makes it, and the cache was not asked
            self._cache.complain("cache '%s' has not answered for %g s; the model is asked", self._cache.name, PATIENCE)
            self._cache.timed_out(lookup.started_ns / 1e9, monotonic())
        lookup.expired = True
        lookup.answer(None)

    def _fail(self, lookup: Lookup, error: NaiadError) -> None:
        self.over(lookup)
        lookup.answered = True
        lookup.conclude(error)

    # What lookups say

    def landed(self, lookup: Lookup) -> None:
        """The cache has answered at once, on the event loop, or on a thread; answers of a thread share a wake-up."""
        if self._cache.breaker.timeouts and not lookup.expired:
            self._cache.answered()
        if on_event_loop(self._loop):
            if lookup.held is not None:
                lookup.go_on()
            return
        self._landed.append(lookup)
        if not self._landing:
            self._landing = True
            try:
                self._loop.call_soon_threadsafe(self._land)
            except RuntimeError:  # the event loop has ended, so no request waits
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
        self._cache_counters.hit(lookup.lookup_ns)
        self._cache.times.lookup_ns += lookup.lookup_ns
        self._counters.answered(now_ns - lookup.started_ns)
        if request.trace is not None:
            record_lookup(request.trace, lookup.started_ns, lookup.looked_up_ns, hit=True)
        return response

    def _response(self, request: Request, cached: CachedResponse) -> Response:
        if not isinstance(cached, CachedResponse):
            raise TypeError(f"it is of type {type(cached).__name__}, and must be a CachedResponse")
        outputs = {each.name: Tensor(each.name, each.datatype, each.shape, each.payload) for each in cached.outputs}
        parameters = dict(cached.parameters) if cached.parameters else {}
        return Response(self._name, self._version, request.id, outputs, parameters)

    def missed(self, lookup: Lookup) -> None:
        """Count it."""
        self._cache_counters.missed(lookup.lookup_ns)
        self._cache.times.lookup_ns += lookup.lookup_ns
        if lookup.request.trace is not None:
            record_lookup(lookup.request.trace, lookup.started_ns, lookup.looked_up_ns, hit=False)

    def cancelled(self, lookup: Lookup) -> None:
        """Count it."""
        self._counters.cancelled(monotonic_ns() - lookup.started_ns)

    def over(self, lookup: Lookup) -> None:
        """Forget it."""
        if lookup.timer is not None:
            lookup.timer.cancel()
            lookup.timer = None
        self._waiting.discard(lookup)
        if not self._waiting:
            self._none_waits.set()

    def keep(self, lookup: Lookup, outcome: Response) -> None:
        """As `CacheWriter.keep`."""
        self._writer.keep(lookup, outcome)
