"""Files and configurations of a load request are freed by reference counts when the load ends."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad import Server
from naiad.errors import InvalidArgumentError, NaiadError
from naiad_testing.fake_backend import FakeBackend
from naiad_testing.loops import until
from naiad_testing.retention import PayloadWatch, freed_by_reference_counts
from naiad_testing.steered import Steered

from .control import explicit

CONFIG = '{"backend": "fake"}'


async def fail_to_load(server: Server, name: str, watch: PayloadWatch, config: str = CONFIG) -> None:
    weights = memoryview(watch.watch(f"weights of '{name}'", np.ones(1 << 16, np.uint8)))
    files: dict[str, Any] = {"1/weights": weights}
    with pytest.raises(NaiadError):
        await server.load(name, config, files)


@pytest.fixture(autouse=True)
def _no_log() -> Iterator[None]:
    """pytest keeps what is logged, and with it the tracebacks of errors."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


async def test_a_load_that_the_backend_refuses_keeps_no_file(tmp_path: Path, backend: FakeBackend) -> None:
    backend.load_error = ValueError("corrupt")

    async with explicit(tmp_path, backend) as server:
        with freed_by_reference_counts() as watch:
            for number in range(5):
                await fail_to_load(server, f"m{number}", watch)
            await until(lambda: not watch.alive())


async def test_a_load_whose_instance_fails_keeps_no_file(tmp_path: Path, backend: FakeBackend) -> None:
    backend.instance_error = ValueError("corrupt")

    async with explicit(tmp_path, backend) as server:
        with freed_by_reference_counts() as watch:
            await fail_to_load(server, "m", watch)
            await until(lambda: not watch.alive())


async def test_a_load_with_a_wrong_configuration_keeps_no_file(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        with freed_by_reference_counts() as watch:
            await fail_to_load(server, "m", watch, '{"backend": "fake", "max_batch_sise": 1}')
            await until(lambda: not watch.alive())


async def test_a_load_that_fails_in_every_try_keeps_no_file(tmp_path: Path, backend: FakeBackend) -> None:
    backend.load_error = ValueError("corrupt")

    async with explicit(tmp_path, backend, model_load_retry_count=2) as server:
        with freed_by_reference_counts() as watch:
            await fail_to_load(server, "m", watch)
            await until(lambda: not watch.alive())


async def test_a_load_that_succeeds_keeps_no_file_in_memory(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        with freed_by_reference_counts() as watch:
            weights = memoryview(watch.watch("weights", np.ones(1 << 16, np.uint8)))
            await server.load("m", CONFIG, {"1/weights": weights})  # type: ignore[dict-item]
            del weights
            await until(lambda: not watch.alive())


async def test_a_load_that_fails_keeps_nothing_that_the_backend_had_in_hand(tmp_path: Path) -> None:
    def load(context: object) -> object:
        weights = watch.watch("weights that the backend read", np.ones(1 << 16, np.uint8))
        raise ValueError(f"{weights.size} weights are wrong")

    async with explicit(tmp_path, Steered("fake", load=load)) as server:
        with freed_by_reference_counts() as watch:
            with pytest.raises(InvalidArgumentError, match="weights are wrong"):
                await server.load("m", CONFIG, {"1/weights": b""})
            await until(lambda: not watch.alive())
