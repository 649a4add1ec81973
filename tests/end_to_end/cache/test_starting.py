"""What a server says of its cache when it starts, and what ends its start."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ..running import Running


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--cache-config=local,size=5000", "--cache-config=redis,host=localhost"),
            "a server has one response cache, and --cache-config names 2: local, redis; keep one",
        ),
        (
            ("--cache-config=local,size=5000", "--response-cache-byte-size=5000"),
            "--response-cache-byte-size and --cache-config are both given",
        ),
        (
            ("--cache-config=memcached,host=a",),
            "no plugin offers the cache 'memcached'; installed caches: ",
        ),
        (("--cache-config=local",), "give it a size in bytes, as in --cache-config local,size=1048576"),
        (("--cache-config=local,size=10",), "10 bytes hold no response; the least size is 1024"),
        (("--cache-config=local,szie=5000",), "cache 'local' has no setting 'szie'"),
        (("--cache-config=redis,port=x",), "cache 'redis': port=x makes no sense"),
        (("--cache-config=size=5000",), "--cache-config must begin with a cache's name"),
        (("--response-cache-byte-size=-1",), "'-1' is no number of bytes"),
    ],
)
def test_a_cache_that_makes_no_sense_ends_the_start(
    counting: Path, serve: Callable[..., Running], words: tuple[str, ...], told: str
) -> None:
    running = serve(*words)

    assert running.exit_status() != 0
    assert told in running.log
    assert "Traceback" not in running.log


def test_the_older_option_opens_the_local_cache(counting: Path, serve: Callable[..., Running]) -> None:
    running = serve("--response-cache-byte-size=100000", "--cache-directory=/opt/tritonserver/caches")

    answers = [running.infer("numbers", 1, 2).document["outputs"][1]["data"] for _ in range(2)]

    assert answers == [[1], [1]]
    assert "--cache-directory is not used" in running.log
    running.stop()


def test_a_model_that_asks_for_a_cache_that_is_not_there_is_served(
    counting: Path, serve: Callable[..., Running]
) -> None:
    running = serve()

    answers = [running.infer("numbers", 1, 2).document["outputs"][1]["data"] for _ in range(2)]

    assert answers == [[1], [2]]
    assert "model 'numbers' asks for a response cache and the server has none" in running.log
    running.stop()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("max_batch_size: 1 sequence_batching {}", "with sequence batching scheduler"),
        ("model_transaction_policy { decoupled: true }", "with 'decoupled' transaction policy"),
    ],
)
def test_models_whose_answers_cannot_be_kept_are_refused(
    counting: Path, serve: Callable[..., Running], more: str, told: str
) -> None:
    from .conftest import CACHED, write_counting

    write_counting(counting, "numbers", more=CACHED + more)

    running = serve("--cache-config=local,size=5000", "--exit-on-error=false")

    assert running.port
    (entry,) = running.entries("numbers")
    assert f"Response Cache does not currently support model numbers {told}" in entry["reason"]
    assert "lease disable the response cache" in entry["reason"]
    running.stop()
