"""Tests that are coroutines run on an event loop of their own, whose clock they can move on."""

from pathlib import Path

import pytest

from naiad_testing.loops import JumpingLoop, coroutine_tests

from .models_that_call import Calling, double

pytest_pyfunc_call = coroutine_tests(JumpingLoop)


@pytest.fixture
def calling(tmp_path: Path) -> Calling:
    """A repository with the model double."""
    calling = Calling(tmp_path)
    calling.add("double", double)
    return calling
