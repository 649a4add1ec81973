"""The cache against a real Redis server: what it keeps, who is let in, and what a server does that does not answer."""

import gc
import logging
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import numpy as np
import pytest
import redis
import trustme

from naiad.types import Response
from naiad_cache_redis.cache import RedisCache
from naiad_cache_redis.factory import RedisCaching
from naiad_kit.caches import CachedResponse
from naiad_tensors.tensors import Tensor
from naiad_testing.caches import check_cache

from .servers import RedisServer, free_port, until

KEY = b"k" * 32
STORED = b"naiad:" + KEY
Start = Callable[..., RedisServer]


def answer(*values: float) -> CachedResponse:
    return CachedResponse.of(Response("m", 1, "", {"o": Tensor.of("o", np.array(values, np.float32))}))


@contextmanager
def opened(**settings: object) -> Iterator[RedisCache]:
    cache = RedisCaching().open({name: str(value) for name, value in settings.items()})
    try:
        yield cache
    finally:
        cache.close()


@contextmanager
def collector_off() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def looked_up(cache: RedisCache, key: bytes = KEY) -> list[float] | None:
    """The values that are found, None for none; the answer must come."""
    answers: list[CachedResponse | None] = []
    answered = Event()
    cache.lookup(key, lambda result: (answers.append(result), answered.set()))  # type: ignore[func-returns-value]
    assert answered.wait(20)
    (result,) = answers
    return result.outputs[0].array.tolist() if result is not None else None


def test_the_contract_of_a_cache_holds(redis_server: RedisServer) -> None:
    check_cache(lambda: RedisCaching().open({"port": str(redis_server.port), "timeout": "10"}))


def test_two_servers_share_what_is_kept(redis_server: RedisServer) -> None:
    with opened(port=redis_server.port) as one, opened(port=redis_server.port) as other:
        one.insert(KEY, answer(1, 2))
        until(lambda: other.report().hits or looked_up(other))

        assert looked_up(other) == [1, 2]


def test_many_lookups_are_answered_in_few_exchanges(redis_server: RedisServer) -> None:
    with opened(port=redis_server.port, timeout=10) as cache:
        cache.insert(KEY, answer(1))
        until(lambda: looked_up(cache))
        before = redis_server.client().info("commandstats")["cmdstat_mget"]["calls"]
        redis_server.freeze()
        results: list[CachedResponse | None] = []
        for _ in range(200):
            cache.lookup(KEY, results.append)
        redis_server.thaw()
        until(lambda: len(results) == 200)
        after = redis_server.client().info("commandstats")["cmdstat_mget"]["calls"]

    assert all(response is not None for response in results)
    assert after - before <= 10


def test_a_database_of_its_own_and_a_time_to_live(redis_server: RedisServer) -> None:
    with opened(port=redis_server.port, db=3, ttl=100) as cache:
        cache.insert(KEY, answer(1))
        until(lambda: looked_up(cache))

    assert redis_server.client().exists(STORED) == 0
    assert 0 < redis_server.client(db=3).ttl(STORED) <= 100


def test_a_password_lets_us_in(start_redis: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start_redis("--requirepass", "sesame")

    with opened(port=server.port, password="sesame") as cache:
        cache.insert(KEY, answer(1))
        until(lambda: looked_up(cache))
    monkeypatch.setenv("TRITONCACHE_REDIS_PASSWORD", "sesame")
    with opened(port=server.port) as cache:
        assert looked_up(cache) == [1]


def test_a_user_with_a_password_lets_us_in(redis_server: RedisServer) -> None:
    administrator = redis_server.client()
    administrator.acl_setuser("naiad", enabled=True, passwords=["+sesame"], keys=["naiad:*"], commands=["+@all"])
    administrator.acl_setuser("default", enabled=False)

    with opened(port=redis_server.port, user="naiad", password="sesame") as cache:
        cache.insert(KEY, answer(1))
        until(lambda: looked_up(cache))

        assert looked_up(cache) == [1]


def test_a_wrong_password_is_reported_once_and_everything_is_a_miss(
    start_redis: Start, caplog: pytest.LogCaptureFixture
) -> None:
    server = start_redis("--requirepass", "sesame")

    with opened(port=server.port, password="barley") as cache:
        cached = [looked_up(cache) for _ in range(3)]
        cache.insert(KEY, answer(1))

    assert cached == [None] * 3
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert f"Redis at localhost:{server.port} fails, and requests go to their models" in warning
    assert "sesame" not in caplog.text
    assert "barley" not in caplog.text


def test_tls_with_certificates_on_both_sides(start_redis: Start, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    for name in ("localhost", "client"):
        certificate = authority.issue_cert(name)
        certificate.private_key_pem.write_to_path(tmp_path / f"{name}.key")
        certificate.cert_chain_pems[0].write_to_path(tmp_path / f"{name}.pem")
    port = free_port()
    files = [f"--tls-{name}-file" for name in ("cert", "key", "ca-cert")]
    values = [tmp_path / "localhost.pem", tmp_path / "localhost.key", tmp_path / "ca.pem"]
    words = [str(word) for pair in zip(files, values, strict=True) for word in pair]
    start_redis("--port", "0", "--tls-port", str(port), *words, port=port)
    secured = {"port": port, "cacert": tmp_path / "ca.pem", "timeout": 10}

    with opened(**secured, cert=tmp_path / "client.pem", key=tmp_path / "client.key") as cache:
        cache.insert(KEY, answer(1))
        until(lambda: looked_up(cache))
    with opened(**secured) as stranger:
        refused = looked_up(stranger)

    assert refused is None


def test_a_server_that_is_away_costs_no_time_and_is_found_again(
    start_redis: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    port = free_port()

    with opened(port=port) as cache:
        assert looked_up(cache) is None
        started = time.monotonic()
        assert [looked_up(cache) for _ in range(500)] == [None] * 500
        taken = time.monotonic() - started
        cache.insert(KEY, answer(1))
        start_redis(port=port)
        until(lambda: cache.insert(KEY, answer(2)) or looked_up(cache))
        cached = looked_up(cache)

    assert taken < 1
    assert cached == [2]
    assert caplog.text.count(" fails, ") == 1
    assert caplog.text.count("answers again") == 1


def test_a_host_that_is_no_name_is_a_miss_at_once(caplog: pytest.LogCaptureFixture) -> None:
    with opened(host="cache..example") as cache:
        cached = [looked_up(cache) for _ in range(3)]

    assert cached == [None] * 3
    (message,) = caplog.records
    assert "Redis at cache..example:6379 fails" in message.getMessage()


def test_a_server_that_is_started_again_is_found_by_the_next_request(start_redis: Start) -> None:
    first = start_redis()

    with opened(port=first.port) as cache:
        cache.insert(KEY, answer(1))
        until(lambda: looked_up(cache))
        first.end()
        start_redis(port=first.port)
        until(lambda: cache.insert(KEY, answer(2)) or looked_up(cache))

        assert looked_up(cache) == [2]


def test_a_server_that_hangs_is_left_alone(redis_server: RedisServer) -> None:
    with opened(port=redis_server.port, timeout=0.05) as cache:
        cache.insert(KEY, answer(1))
        until(lambda: looked_up(cache))
        redis_server.freeze()
        first = looked_up(cache)
        started = time.monotonic()
        others = [looked_up(cache) for _ in range(100)]
        taken = time.monotonic() - started
        redis_server.thaw()
        until(lambda: looked_up(cache) == [1])

        assert [first, *others] == [None] * 101
        assert taken < 2.5  # half of what 100 waits take
        assert cache.report().failures >= 100


def test_a_request_waits_no_longer_for_an_answer_than_the_setting_says(redis_server: RedisServer) -> None:
    with opened(port=redis_server.port, timeout=0.4) as cache:
        cache.insert(KEY, answer(1))
        until(lambda: looked_up(cache))
        redis_server.freeze()
        started = time.monotonic()
        cached = looked_up(cache)
        taken = time.monotonic() - started
        redis_server.thaw()

    assert cached is None
    assert 0.4 <= taken < 4


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x80\x04N."])
def test_what_somebody_else_put_there_is_a_miss(
    redis_server: RedisServer, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    redis_server.client().set(STORED, content)

    with opened(port=redis_server.port) as cache:
        cached = [looked_up(cache), looked_up(cache)]
        failures = cache.report().failures

    assert (cached, failures) == ([None, None], 2)
    assert caplog.text.count("something else than a response is in Redis") == 1


def test_something_of_another_kind_under_a_key_is_a_miss(redis_server: RedisServer) -> None:
    redis_server.client().rpush(STORED, b"a list")

    with opened(port=redis_server.port) as cache:
        assert looked_up(cache) is None


def test_a_server_without_memory_keeps_nothing_and_says_so_once(
    start_redis: Start, caplog: pytest.LogCaptureFixture
) -> None:
    server = start_redis("--maxmemory", "100kb", "--maxmemory-policy", "noeviction")

    with opened(port=server.port) as cache:
        for number in range(3):
            cache.insert(bytes([number]) * 32, answer(*range(100)))
        until(lambda: cache.report().failures == 3)

    assert "did not keep a response: command not allowed when used memory" in caplog.text
    assert server.client().dbsize() == 0


def test_more_than_may_wait_is_not_kept(redis_server: RedisServer) -> None:
    large = CachedResponse(answer(1).outputs, {}, 40 << 20)
    redis_server.freeze()

    with opened(port=redis_server.port, timeout=10) as cache:
        cache.insert(KEY, large)
        cache.insert(KEY, large)
        left_out = cache.report().failures
        redis_server.thaw()
        until(lambda: looked_up(cache))
        until(lambda: cache.report().insertions == 1)

    assert left_out == 1


def test_keys_are_distinguished_in_the_database(redis_server: RedisServer) -> None:
    with opened(port=redis_server.port) as cache:
        cache.insert(KEY, answer(1))
        cache.insert(b"K" * 32, answer(2))
        until(lambda: looked_up(cache) and looked_up(cache, b"K" * 32))

    client: redis.Redis = redis_server.client()
    assert set(client.keys()) == {STORED, b"naiad:" + b"K" * 32}


@pytest.mark.parametrize("fault", ["without memory", "away"])
def test_what_a_server_did_not_keep_is_freed_without_the_garbage_collector(
    start_redis: Start, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    server = start_redis("--maxmemory", "100kb", "--maxmemory-policy", "noeviction")
    sent: list[weakref.ref[object]] = []

    def encode(_response: CachedResponse) -> memoryview:
        content = np.zeros(100_000, np.uint8)
        sent.append(weakref.ref(content))
        return memoryview(content)

    monkeypatch.setattr("naiad_cache_redis.cache.encode", encode)
    with opened(port=server.port) as cache, collector_off():
        looked_up(cache)
        if fault == "away":
            server.end()
        cache.insert(KEY, answer(1))
        until(lambda: cache.report().failures == 1)

        until(lambda: [content() for content in sent] == [None])
