"""Nets of Caffe2 behind a whole server, without a frontend."""

from pathlib import Path

import numpy as np
import pytest

import naiad_caffe2
import naiad_scheduler_dynamic
from naiad.errors import ModelFailedError
from naiad_testing import serve

from .nets import Net

PLUGINS = [naiad_caffe2, naiad_scheduler_dynamic]
PLACES = 'input { name: "places" data_type: TYPE_INT64 dims: [ 1 ] }\n'
WARM = """model_warmup { name: "w" batch_size: 1
  inputs { key: "places" value { data_type: TYPE_INT64 dims: [ 1 ] zero_data: true } } }"""


def write(repository: Path, config: str, name: str = "table") -> Path:
    """The rows of a table, which fail for a place behind its last."""
    net = Net("places")
    net.weights("table", np.arange(10, 14, dtype=np.float32))
    net.op("Gather", "table places", "rows")
    (repository / name / "1").mkdir(parents=True)
    net.gives("rows").write(repository / name / "1" / "model.netdef")
    (repository / name / "config.pbtxt").write_text(config)
    return repository / name


def test_a_net_is_served_by_its_files_alone_and_its_inputs(tmp_path):
    model = write(tmp_path, "max_batch_size: 4\n" + PLACES + WARM)

    with serve(model, plugins=PLUGINS) as client:
        answer = client.infer(places=[[1], [3]])
        config = client.call(lambda server: server.model_config("table"))
        (statistics,) = client.call(lambda server: server.statistics("table"))

    assert answer["rows"].tolist() == [[11.0], [13.0]]
    assert (config.platform, config.backend) == ("caffe2_netdef", "caffe2")
    assert config.default_model_filename == "model.netdef"
    assert [(group.name, group.count) for group in config.instance_group] == [("table", 1)]
    assert [(each.type, each.byte_size) for each in statistics.memory_usage] == [("CPU", 16)]


def test_requests_share_an_execution_and_one_that_fails_is_the_only_one(tmp_path):
    batched = "dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 10000000 }"
    model = write(tmp_path, "max_batch_size: 3\n" + PLACES + batched)

    with serve(model, plugins=PLUGINS) as client:
        good = client.infer_all(*({"places": [[place]]} for place in range(3)))
        (statistics,) = client.call(lambda server: server.statistics("table"))
        first, second, third = client.send_all([client.request(places=[[place]]) for place in (1, 9, 3)])

    assert [each["rows"].tolist() for each in good] == [[[10.0]], [[11.0]], [[12.0]]]
    assert (statistics.inference_count, statistics.execution_count) == (3, 1)
    assert first.outputs["rows"].array.tolist() == [[11.0]]
    assert isinstance(second, ModelFailedError)
    assert "model 'table': onnx runtime error" in str(second)
    assert third.outputs["rows"].array.tolist() == [[13.0]]


@pytest.mark.parametrize("count", [1, 3])
def test_several_instances_serve_one_net(tmp_path, count):
    model = write(tmp_path, PLACES.replace("[ 1 ]", "[ -1 ]") + f"instance_group {{ count: {count} }}")

    with serve(model, plugins=PLUGINS) as client:
        answers = client.infer_all(*({"places": [place, 0]} for place in range(4)))

    assert [each["rows"].tolist() for each in answers] == [[10.0 + place, 10.0] for place in range(4)]


def test_a_net_that_cannot_be_translated_is_unavailable_with_the_reason(tmp_path):
    write(tmp_path, "max_batch_size: 4\n" + PLACES)
    net = Net("x")
    net.op("Snap", "x", "y")
    (tmp_path / "bad" / "1").mkdir(parents=True)
    net.gives("y").write(tmp_path / "bad" / "1" / "model.netdef")
    (tmp_path / "bad" / "config.pbtxt").write_text('input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }')

    with serve(tmp_path, plugins=PLUGINS, options={"exit-on-error": False}) as client:
        answer = client["table"].infer(places=[[2]])
        states = {entry.name: (entry.state, entry.reason) for entry in client.call(lambda server: server.index())}

    assert answer["rows"].tolist() == [[12.0]]
    assert (states["table"][0], states["bad"][0]) == ("READY", "UNAVAILABLE")
    assert "failed to load model 'bad' from 'model.netdef'" in states["bad"][1]
    assert "operator 0 Snap of the net" in states["bad"][1]
