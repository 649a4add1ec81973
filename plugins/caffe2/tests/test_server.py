"""A net of Caffe2 behind a whole server, without a frontend."""

import numpy as np

import naiad_caffe2
import naiad_scheduler_dynamic
from naiad_testing import serve

from .nets import Net


def test_a_net_is_served_by_its_files_and_its_inputs_alone(tmp_path):
    net = Net("row")
    net.weights("table", np.arange(10, 14, dtype=np.float32))
    net.op("Gather", "table row", "rows")
    (tmp_path / "table" / "1").mkdir(parents=True)
    net.gives("rows").write(tmp_path / "table" / "1" / "model.netdef")
    config = 'max_batch_size: 4 input { name: "row" data_type: TYPE_INT64 dims: [ 1 ] }'
    (tmp_path / "table" / "config.pbtxt").write_text(config)

    with serve(tmp_path / "table", plugins=[naiad_caffe2, naiad_scheduler_dynamic]) as client:
        answer = client.infer(row=[[1], [3]])
        config = client.call(lambda server: server.model_config("table"))
        (statistics,) = client.call(lambda server: server.statistics("table"))

    assert answer["rows"].tolist() == [[11.0], [13.0]]
    assert (config.platform, config.backend) == ("caffe2_netdef", "caffe2")
    assert (config.default_model_filename, config.instance_group[0].count) == ("model.netdef", 1)
    assert [(each.type, each.byte_size) for each in statistics.memory_usage] == [("CPU", 16)]
