"""What the settings of `--cache-config redis,...` come to, those of Triton's cache among them."""

from pathlib import Path

import pytest

from naiad.errors import InvalidArgumentError
from naiad_cache_redis.factory import RedisCaching, RedisSettings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"port": "http"}, "cache 'redis': port=http is invalid"),
        ({"port": "65536"}, "port=65536 is invalid"),
        ({"db": "first"}, "db=first is invalid"),
        ({"db": "-1"}, "db=-1 is invalid"),
        ({"socket_timeout": "soon"}, "socket_timeout=soon is invalid: it must be a whole number"),
        ({"pool_size": "many"}, "pool_size=many is invalid"),
        ({"cacert": "/nowhere.pem"}, "cacert=/nowhere.pem is invalid: there is no such file"),
        ({"cacert_dir": "/nowhere"}, "cacert_dir=/nowhere is invalid: there is no such folder"),
        ({"cert": __file__, "tls": "no"}, "cert is for TLS, which tls=no turns off; leave one of them out"),
        ({"key": __file__}, "key is that of a certificate; add cert=FILE"),
        ({"timeout": "0"}, "timeout=0 is invalid: '0' is not between 0 and 60"),
        ({"ttl": "-1"}, "ttl=-1 is invalid"),
        ({"tls": "maybe"}, "tls=maybe is invalid"),
        ({"hots": "h"}, "cache 'redis' has no setting 'hots'; its settings are host, port, user"),
    ],
)
def test_settings_that_are_invalid_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        RedisCaching().open(settings)


def test_settings_go_before_the_environment() -> None:
    environment = {"TRITONCACHE_REDIS_USERNAME": "env", "TRITONCACHE_REDIS_PASSWORD": "secret"}

    read = RedisSettings.read({"user": "u", "host": "h", "port": "1", "tls": "1"}, environment)

    assert (read.user, read.password, read.host, read.port, read.tls) == ("u", "secret", "h", 1, True)


def test_the_settings_of_triton_are_read() -> None:
    fields = {"host": "h", "connect_timeout": "1500", "socket_timeout": "0", "pool_size": "4", "wait_timeout": "100"}

    read = RedisSettings.read(fields, {})

    assert (read.connect_timeout, read.socket_timeout) == (1.5, 60)
    assert RedisSettings.read({"timeout": "2", "socket_timeout": "100"}, {}) == RedisSettings(
        connect_timeout=2, socket_timeout=0.1
    )


def test_a_setting_for_a_certificate_turns_tls_on(tmp_path: Path) -> None:
    for name in ("ca.pem", "own.pem", "own.key"):
        (tmp_path / name).touch()
    files = {name: str(tmp_path / file) for name, file in (("cert", "own.pem"), ("key", "own.key"))}

    assert RedisSettings.read(files, {}).tls
    assert RedisSettings.read({"cacert": str(tmp_path / "ca.pem")}, {}).tls
    assert RedisSettings.read({"cacert_dir": str(tmp_path)}, {}).tls
    assert not RedisSettings.read({"password": "p"}, {}).tls
