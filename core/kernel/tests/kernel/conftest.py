"""Tests of the kernel that are coroutines run on an event loop of their own, whose clock they can move on."""

from pathlib import Path

import pytest

from naiad_testing.backends import FakeBackend
from naiad_testing.loops import JumpingLoop, coroutine_tests

pytest_pyfunc_call = coroutine_tests(JumpingLoop)


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    """A backend with the model m in the repository."""
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    return backend
