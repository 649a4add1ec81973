"""Response cache in a Redis server, which several servers may share; two worker threads talk to Redis."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from naiad_cache_redis.batching_worker import BatchingWorker
from naiad_cache_redis.codec import ForeignValueError, decode, encode
from naiad_kit.caches import CachedResponse, CacheReport
from naiad_kit.sparse_log import SparseLog

if TYPE_CHECKING:
    import redis

_logger = logging.getLogger("naiad.cache.redis")

_PREFIX = b"naiad:"
_LARGEST = 256 << 20
_MOST_WAITING = 64 << 20
"""Bytes of responses that may wait to be sent; further responses are not kept."""
_BYTES_AT_ONCE = 64 << 20
"""About the most that one MGET brings: it is one allocation for each value, and all of them are held together."""
_KEYS_AT_ONCE = 128
_PAUSE = 1.0
"""Seconds for which a server that failed is not asked again: each request would wait for its timeout."""
_OnResponse = Callable[[CachedResponse | None], None]


class RedisCache:
    """Asks and fills the server behind `client`, which `where` names. What fails is a miss, with a line in the log."""

    shared = True

    def __init__(self, client: "redis.Redis", where: str, ttl: int = 0) -> None:
        self.largest: float = _LARGEST
        self._client = client
        self._where = where
        self._ttl = ttl or None
        self._retry_at = 0.0
        self._lookups = self._hits = self._insertions = self._left_out = self._waiting_bytes = 0
        self._sent_bytes = 0
        self._keys_at_once = 1
        self._largest_value = 1
        self._is_failing = False
        self._refusals, self._foreign_values = SparseLog(_logger), SparseLog(_logger)
        self._lookups_failed = self._insertions_failed = 0
        self._lookup_worker = BatchingWorker("naiad-cache-redis-lookup", self._run_lookups, self._ping)
        self._insert_worker = BatchingWorker("naiad-cache-redis-insert", self._run_inserts)

    def lookup(self, key: bytes, on_response: _OnResponse) -> None:
        """Ask the server on a thread; a miss at once while the server fails."""
        self._lookups += 1
        if monotonic() < self._retry_at:
            self._left_out += 1
            on_response(None)
        else:
            self._lookup_worker.put((key, on_response))

    def insert(self, key: bytes, response: CachedResponse) -> None:
        """Send to the server on a thread, unless it fails or too much waits to be sent."""
        waiting = self._waiting_bytes - self._sent_bytes
        if monotonic() < self._retry_at or waiting + response.byte_size > max(_MOST_WAITING, response.byte_size):
            self._left_out += 1
            return
        self._waiting_bytes += response.byte_size
        self._insert_worker.put((key, response))

    def report(self) -> CacheReport:
        """The counters, without entries and bytes, which Redis counts itself."""
        failures = self._left_out + self._lookups_failed + self._insertions_failed
        return CacheReport(lookups=self._lookups, hits=self._hits, insertions=self._insertions, failures=failures)

    def close(self) -> None:
        """End the threads, and the connections."""
        self._retry_at = float("inf")
        self._lookup_worker.close()
        self._insert_worker.close()
        self._client.close()

    # On the threads

    def _ping(self) -> None:
        self._exchange(self._client.ping)

    def _run_lookups(self, lookups: Sequence[tuple[bytes, _OnResponse]]) -> None:
        """Answer every lookup, whatever fails: a request waits for each."""
        start = 0
        while start < len(lookups):
            some = lookups[start : start + self._keys_at_once]
            start += len(some)
            values: Sequence[Any] | None = None
            if monotonic() >= self._retry_at:
                values = self._exchange(partial(self._values, [key for key, _ in some]))
            if values is None:
                self._lookups_failed += len(some)
            for index, (_, on_response) in enumerate(some):
                self._answer(on_response, None if values is None else values[index])

    def _values(self, keys: Sequence[bytes]) -> Sequence[Any]:
        """The value of each key. The next exchange has as many keys as values of the largest size so far allow."""
        values: Sequence[Any] = self._client.mget([_PREFIX + key for key in keys])
        if len(values) != len(keys):
            raise ValueError(f"MGET of {len(keys)} keys brought {len(values)} values")
        self._largest_value = max(self._largest_value, *(len(value) for value in values if value is not None), 1)
        fitting = max(1, _BYTES_AT_ONCE // self._largest_value)
        self._keys_at_once = min(2 * self._keys_at_once, fitting, _KEYS_AT_ONCE)
        return values

    def _answer(self, on_response: _OnResponse, value: bytes | None) -> None:
        response = self._decoded(value) if value is not None else None
        self._hits += response is not None
        try:
            on_response(response)
        except BaseException:
            _logger.exception("a lookup in Redis at %s could not be answered", self._where)

    def _run_inserts(self, insertions: Sequence[tuple[bytes, CachedResponse]]) -> None:
        answers: Sequence[Any] | None = None
        try:
            if monotonic() >= self._retry_at:
                answers = self._sent(insertions)
        finally:
            self._sent_bytes += sum(response.byte_size for _, response in insertions)
            kept = 0 if answers is None else sum(not isinstance(answer, Exception) for answer in answers)
            self._insertions += kept
            self._insertions_failed += len(insertions) - kept

    def _sent(self, insertions: Sequence[tuple[bytes, CachedResponse]]) -> Sequence[Any] | None:
        """The answer of the server to each response that can be encoded; None where it fails."""
        pipeline = self._client.pipeline(transaction=False)
        commands = pipeline.command_stack
        self._encode_into(pipeline, insertions)
        if not commands:
            return ()
        answers: Sequence[Any] | None = self._exchange(lambda: pipeline.execute(raise_on_error=False))
        commands.clear()  # the frames of an error that redis-py has kept in a cycle refer to them
        # the traceback of an error holds the list of answers with this very error, and all values that were sent
        refused = [answer.with_traceback(None) for answer in answers or () if isinstance(answer, Exception)]
        if refused:
            self._refusals.warning("Redis at %s did not keep a response: %s", self._where, refused[0])
        return answers

    def _encode_into(self, pipeline: Any, insertions: Sequence[tuple[bytes, CachedResponse]]) -> None:
        for key, response in insertions:
            try:
                pipeline.set(_PREFIX + key, encode(response), ex=self._ttl)
            except Exception as error:  # noqa: BLE001 - one response that cannot be encoded is not kept, others are
                self._refusals.warning("a response for Redis at %s cannot be encoded: %r", self._where, error)

    def _decoded(self, value: bytes) -> CachedResponse | None:
        try:
            return decode(value)
        except ForeignValueError as error:
            self._foreign_values.warning("something else than a response is in Redis at %s: %s", self._where, error)
        except Exception as error:  # noqa: BLE001 - no memory for it, say: a miss, as the request goes to its model
            self._foreign_values.warning("a value in Redis at %s cannot be decoded: %r", self._where, error)
        self._lookups_failed += 1
        return None

    def _exchange(self, exchange: Callable[[], Any]) -> Any:
        """The answer of the server; None where it fails, and it is not asked again for a while."""
        try:
            answer = exchange()
        except Exception as error:  # noqa: BLE001 - a host that is no name is no error of Redis, and requests wait
            self._retry_at = max(self._retry_at, monotonic() + _PAUSE)
            if not self._is_failing:
                self._is_failing = True
                _logger.warning("Redis at %s fails, and requests go to their models: %s", self._where, error)
            return None
        if self._is_failing:
            self._is_failing = False
            _logger.info("Redis at %s answers again", self._where)
        return answer
