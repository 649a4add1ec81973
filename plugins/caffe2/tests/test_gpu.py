"""Nets of Caffe2 on a GPU."""

import numpy as np
import pytest

from .nets import Net

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("kind", ["KIND_GPU", "KIND_MODEL"])
def test_a_net_runs_on_a_gpu_as_on_the_cpu(workbench, kind):
    random = np.random.default_rng(3)
    net = Net("x")
    net.weights("w", random.standard_normal((4, 3, 3, 3)).astype(np.float32))
    net.op("Conv", "x w", "y", kernel=3, pad=1)
    net.op("LRN", "y", "y", size=3, alpha=0.1, beta=0.75)
    net.op("MaxPool", "y", "y", kernel=2, stride=2, legacy_pad=3)
    net.op("Softmax", "y", "y")
    net.gives("y").write(workbench.path("model.netdef"))
    config = 'max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: [ 3, 7, 7 ] }'
    sent = {"x": random.standard_normal((2, 3, 7, 7)).astype(np.float32)}
    workbench.gpus = 1

    on_cpu = workbench.load(config + "instance_group { kind: KIND_CPU }").execute(sent)
    served = workbench.load(config + f"instance_group {{ kind: {kind} count: 2 }}")

    np.testing.assert_allclose(served.execute(sent)["y"], on_cpu["y"], rtol=1e-3, atol=1e-5)
    assert [(each.type, each.id) for each in served.model.memory_usage()] == [("GPU", 0)]


def test_rows_are_reduced_by_their_lengths_on_a_gpu(workbench):
    net = Net("rows", "lengths")
    net.op("LengthsMean", "rows lengths", "means")
    net.gives("means").write(workbench.path("model.netdef"))
    workbench.gpus = 1

    served = workbench.load(
        'input [ { name: "rows" data_type: TYPE_FP32 dims: [ -1, 2 ] },'
        ' { name: "lengths" data_type: TYPE_INT32 dims: [ -1 ] } ] instance_group { kind: KIND_GPU }'
    )

    answer = served.execute({"rows": np.ones((5, 2), np.float32), "lengths": np.array([2, 0, 3], np.int32)})
    assert answer["means"].tolist() == [[1, 1], [0, 0], [1, 1]]
