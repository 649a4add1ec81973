"""A model folder with nets of Caffe2, and the backend that loads them without a server."""

from pathlib import Path

import numpy as np
import pytest

from naiad_caffe2.backend import Caffe2Backend
from naiad_testing.workbench import Workbench


@pytest.fixture
def workbench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path / "m", Caffe2Backend())


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(7)
