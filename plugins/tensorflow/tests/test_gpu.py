"""The same models on a GPU: `make test-gpu` on a machine with one and `naiad-tensorflow[gpu]`."""

import numpy as np
import pytest

from .conftest import add_sub

pytestmark = pytest.mark.gpu


def test_requests_are_computed_on_the_gpu(workbench, zoo):
    workbench.gpus = 1
    zoo(add_sub, workbench.path("model.savedmodel"))
    served = workbench.load("instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    given = {"a": np.full((2, 16), 3, np.float32), "b": np.ones((2, 16), np.float32)}

    answer = served.execute(given)

    assert answer["sum"][:, 0].tolist() == [4.0, 4.0]
    devices = [each.name for each in served.instance._session.list_devices() if each.device_type == "GPU"]
    assert devices
