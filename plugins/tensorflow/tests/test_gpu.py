"""The same models on a GPU: `make test-gpu` on a machine with one and `naiad-tensorflow[gpu]`."""

import numpy as np
import pytest

from .conftest import add_sub

pytestmark = pytest.mark.gpu

INPUT_ARRAY = {"a": np.full((2, 16), 3, np.float32), "b": np.ones((2, 16), np.float32)}


def gpus_of(instance):
    return [each.name for each in instance._session.list_devices() if each.device_type == "GPU"]


def test_requests_are_computed_on_the_gpu(workbench, zoo):
    workbench.gpus = 1
    zoo(add_sub, workbench.path("model.savedmodel"))
    served = workbench.load("instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")

    answer = served.execute(INPUT_ARRAY)

    assert answer["sum"][:, 0].tolist() == [4.0, 4.0]
    assert gpus_of(served.instance)
    assert [(usage.type, usage.id) for usage in served.model.memory_usage()] == [("GPU", 0)]


def test_an_instance_on_the_cpu_sees_no_gpu(workbench, zoo):
    workbench.gpus = 1
    zoo(add_sub, workbench.path("model.savedmodel"))

    served = workbench.load("instance_group [ { kind: KIND_CPU } ]")

    assert gpus_of(served.instance) == []
    assert served.execute(INPUT_ARRAY)["sum"][:, 0].tolist() == [4.0, 4.0]


def test_a_machine_with_a_gpu_computes_there_unless_reported_otherwise(workbench, zoo):
    workbench.gpus = 1
    zoo(add_sub, workbench.path("model.savedmodel"))

    served = workbench.load(settings={"gpu-memory-fraction": "0.2"})

    assert gpus_of(served.instance)
    assert served.execute(INPUT_ARRAY)["sum"][:, 0].tolist() == [4.0, 4.0]


def test_half_precision_is_for_the_gpu(workbench, zoo):
    workbench.gpus = 1
    zoo(add_sub, workbench.path("model.savedmodel"))
    mixed = 'optimization { execution_accelerators { gpu_execution_accelerator { name: "auto_mixed_precision" } } }'

    answer = workbench.load(f"instance_group [ {{ kind: KIND_MODEL }} ] {mixed}").execute(INPUT_ARRAY)

    np.testing.assert_allclose(answer["sum"][:, 0], [4.0, 4.0], rtol=1e-2)
