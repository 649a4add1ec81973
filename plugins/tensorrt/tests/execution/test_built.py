"""The engines of the tests that need a GPU are built where there is none, too."""

import pytest
import tensorrt_rtx_bindings as rtx

from .built import BUILDERS, builder_for


@pytest.mark.parametrize("name", list(BUILDERS))
def test_tensorrt_builds_the_engine(name):
    plan = BUILDERS[name](rtx)

    assert plan[:4] == b"vtrt"


def test_tensorrt_for_rtx_builds_for_the_gpus_that_it_runs_on():
    assert builder_for("8.9") is not None
    assert builder_for("9.0") is not rtx
