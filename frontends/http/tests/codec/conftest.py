"""What several tests of the codec share: regions of shared memory, and a decoder over them."""

import pytest

from .regions import Regions


@pytest.fixture
def regions():
    return Regions()
