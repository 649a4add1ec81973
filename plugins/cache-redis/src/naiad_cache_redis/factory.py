"""Factory of the Redis cache: `--cache-config redis,host=HOST,port=PORT` with credentials, TLS and timeouts."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from naiad.errors import UsageError
from naiad.options import boolean, port, positive
from naiad_cache_redis.cache import RedisCache
from naiad_kit.backends.parameters import count
from naiad_kit.caches import check_settings

_FILES = ("cacert", "cacert_dir", "cert", "key")
_POOL = ("pool_size", "wait_timeout")
"""Settings of Triton's cache for a pool of connections; here two connections do everything, and none is waited for."""
_TIMEOUTS = ("timeout", "connect_timeout", "socket_timeout")
_SETTINGS = ("host", "port", "user", "password", "db", "tls", *_FILES, *_TIMEOUTS, "ttl", *_POOL)
_LONGEST = 60.0
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Which server, as whom, and how long to wait for it, in seconds. `ttl` seconds end a response, 0 never."""

    host: str = "localhost"
    port: int = 6379
    user: str = ""
    password: str = ""
    db: int = 0
    tls: bool = False
    cacert: str = ""
    cacert_dir: str = ""
    cert: str = ""
    key: str = ""
    connect_timeout: float = 0.25
    socket_timeout: float = 0.25
    ttl: int = 0

    @classmethod
    def read(cls, settings: Mapping[str, str], environment: Mapping[str, str]) -> "RedisSettings":
        """Those of `--cache-config`; user and password may come from the environment instead.

        Raises UsageError.
        """
        check_settings("redis", settings, _SETTINGS)
        for name in _POOL:
            _read(settings, name, count, 0)
        timeout = _read(settings, "timeout", _seconds, 0.25)
        return cls(
            host=settings.get("host", "localhost"),
            port=_read(settings, "port", port, 6379),
            user=settings.get("user", environment.get("TRITONCACHE_REDIS_USERNAME", "")),
            password=settings.get("password", environment.get("TRITONCACHE_REDIS_PASSWORD", "")),
            db=_read(settings, "db", count, 0),
            tls=_speaks_tls(settings),
            cacert=_read(settings, "cacert", _file, ""),
            cacert_dir=_read(settings, "cacert_dir", _folder, ""),
            cert=_read(settings, "cert", _file, ""),
            key=_read(settings, "key", _file, ""),
            connect_timeout=_read(settings, "connect_timeout", _milliseconds, timeout),
            socket_timeout=_read(settings, "socket_timeout", _milliseconds, timeout),
            ttl=_read(settings, "ttl", positive, 0),
        )


class RedisCaching:
    """Opens a `RedisCache`; whether its server can be reached shows later, in the log."""

    name = "redis"

    def open(self, settings: Mapping[str, str]) -> RedisCache:
        """A cache in that server. Raises UsageError for invalid settings."""
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        read = RedisSettings.read(settings, os.environ)
        client = redis.Redis(
            host=read.host,
            port=read.port,
            username=read.user or None,
            password=read.password or None,
            db=read.db,
            socket_timeout=read.socket_timeout,
            socket_connect_timeout=read.connect_timeout,
            # for a connection that the server has closed in the meantime; who does not answer is not asked twice
            retry=Retry(NoBackoff(), 1, (redis.ConnectionError,)),
            ssl=read.tls,
            ssl_check_hostname=True,  # the default only from version 6 of the library on
            ssl_ca_certs=read.cacert or None,
            ssl_ca_path=read.cacert_dir or None,
            ssl_certfile=read.cert or None,
            ssl_keyfile=read.key or None,
        )
        return RedisCache(client, f"{read.host}:{read.port}", read.ttl)


def _speaks_tls(settings: Mapping[str, str]) -> bool:
    """Whether to use TLS: by default if a setting names a certificate, so that no password is sent in plain text."""
    named = [name for name in _FILES if name in settings]
    enabled = _read(settings, "tls", boolean, bool(named))
    if named and not enabled:
        raise UsageError(
            f"cache 'redis': {named[0]} is for TLS, which tls={settings['tls']} turns off; leave one of them out"
        )
    if "key" in settings and "cert" not in settings:
        raise UsageError("cache 'redis': key is that of a certificate; add cert=FILE")
    return enabled


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= _LONGEST:
        raise ValueError(f"'{text}' is not between 0 and {_LONGEST:g}")
    return value


def _milliseconds(text: str) -> float:
    """As Triton's cache has them, where 0 waits for ever; here a request goes to its model after a minute at most."""
    return min(count(text) / 1000 or _LONGEST, _LONGEST)


def _file(text: str) -> str:
    if not Path(text).is_file():
        raise ValueError("there is no such file")
    return text


def _folder(text: str) -> str:
    if not Path(text).is_dir():
        raise ValueError("there is no such folder")
    return text


def _read(settings: Mapping[str, str], name: str, read: Callable[[str], _T], default: _T) -> _T:
    if name not in settings:
        return default
    try:
        return read(settings[name])
    except ValueError as error:
        raise UsageError(f"cache 'redis': {name}={settings[name]} is invalid: {error}") from error
