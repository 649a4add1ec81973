"""ONNX models behind a whole server, without a frontend."""

from pathlib import Path

import numpy as np

import naiad_onnx
import naiad_scheduler_dynamic
from naiad_testing import serve

PLUGINS = [naiad_onnx, naiad_scheduler_dynamic]


def write(repository: Path, name: str, proto, config: str = "") -> Path:
    model = repository / name
    (model / "1").mkdir(parents=True)
    (model / "1" / "model.onnx").write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
    if config:
        (model / "config.pbtxt").write_text(config)
    return model


def test_a_model_without_configuration_is_served(tmp_path, models):
    model = write(tmp_path, "add_sub", models.add_sub())

    with serve(model, plugins=PLUGINS) as client:
        answer = client.infer(A=np.full((1, 16), 3), B=np.full((1, 16), 1))
        config = client.call(lambda server: server.model_config("add_sub"))

    assert answer["SUM"].tolist() == [[4.0] * 16]
    assert answer["DIFFERENCE"].tolist() == [[2.0] * 16]
    assert (config.platform, config.backend) == ("onnxruntime_onnx", "onnxruntime")
    assert config.max_batch_size == 4
    assert config.dynamic_batching.preferred_batch_size == (4,)
    assert [(group.name, group.count) for group in config.instance_group] == [("add_sub", 2)]


def test_a_scalar_model_is_served_with_one_dim(tmp_path, models):
    model = write(tmp_path, "scalar", models.identity([]))

    with serve(model, plugins=PLUGINS) as client:
        answer = client.infer(IN=[5.0])

    assert answer["OUT"].tolist() == [5.0]


def test_statistics_report_the_memory_of_the_weights(tmp_path, models):
    model = write(tmp_path, "dense", models.dense(64, 32))

    with serve(model, plugins=PLUGINS) as client:
        (statistics,) = client.call(lambda server: server.statistics("dense"))

    size = (model / "1" / "model.onnx").stat().st_size
    assert [(each.type, each.id, each.byte_size) for each in statistics.memory_usage] == [("CPU", 0, size)]
