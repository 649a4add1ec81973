"""The error message of an environment without the bindings of CUDA."""

import sys

import pytest

from naiad.errors import PluginError
from naiad_tensorrt.execution import cuda


def test_missing_bindings_of_cuda_are_reported_with_what_to_install(monkeypatch):
    cuda._runtime.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", None)

    with pytest.raises(PluginError, match="run pip install 'cuda-bindings"):
        cuda.device_count()
