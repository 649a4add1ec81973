"""A repository of models for each test, and an event loop for tests that are coroutines."""

from pathlib import Path

import pytest

from naiad_testing.loops import coroutine_tests

from .models import Models

pytest_pyfunc_call = coroutine_tests()


@pytest.fixture
def models(tmp_path: Path) -> Models:
    """A repository to add models to."""
    return Models(tmp_path)
