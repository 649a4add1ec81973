"""Opening the cache: `--cache-config redis,host=HOST,port=PORT` and what else the server needs to let us in."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from naiad.cache import check_settings
from naiad.errors import InvalidArgumentError
from naiad.options import boolean, port, positive
from naiad_cache_redis.cache import RedisCache

_SETTINGS = ("host", "port", "user", "password", "db", "tls", "cacert", "cert", "key", "timeout", "ttl")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Which server, as whom, and how long to wait for it: `timeout` seconds. `ttl` seconds end a response, 0 never."""

    host: str = "localhost"
    port: int = 6379
    user: str = ""
    password: str = ""
    db: int = 0
    tls: bool = False
    cacert: str = ""
    cert: str = ""
    key: str = ""
    timeout: float = 0.25
    ttl: int = 0

    @classmethod
    def read(cls, settings: Mapping[str, str], environment: Mapping[str, str]) -> "RedisSettings":
        """Those of `--cache-config`; user and password may come from the environment instead.

        Raises InvalidArgumentError.
        """
        check_settings("redis", settings, _SETTINGS)
        return cls(
            host=settings.get("host", "localhost"),
            port=_read(settings, "port", port, 6379),
            user=settings.get("user", environment.get("TRITONCACHE_REDIS_USERNAME", "")),
            password=settings.get("password", environment.get("TRITONCACHE_REDIS_PASSWORD", "")),
            db=_read(settings, "db", int, 0),
            tls=_read(settings, "tls", boolean, False),
            cacert=settings.get("cacert", ""),
            cert=settings.get("cert", ""),
            key=settings.get("key", ""),
            timeout=_read(settings, "timeout", _seconds, 0.25),
            ttl=_read(settings, "ttl", positive, 0),
        )


class RedisCaching:
    """Opens a `RedisCache`; whether its server can be reached is seen later, and told in the log."""

    name = "redis"

    def open(self, settings: Mapping[str, str]) -> RedisCache:
        """A cache in that server. Raises InvalidArgumentError for settings that make no sense."""
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
            socket_timeout=read.timeout,
            socket_connect_timeout=read.timeout,
            retry=Retry(NoBackoff(), 1),  # for a connection that the server has closed in the meantime
            ssl=read.tls,
            ssl_ca_certs=read.cacert or None,
            ssl_certfile=read.cert or None,
            ssl_keyfile=read.key or None,
        )
        return RedisCache(client, f"{read.host}:{read.port}", read.ttl)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= 60:
        raise ValueError(f"'{text}' is not between 0 and 60")
    return value


def _read(settings: Mapping[str, str], name: str, read: Callable[[str], _T], default: _T) -> _T:
    if name not in settings:
        return default
    try:
        return read(settings[name])
    except ValueError as error:
        raise InvalidArgumentError(f"cache 'redis': {name}={settings[name]} makes no sense: {error}") from error
