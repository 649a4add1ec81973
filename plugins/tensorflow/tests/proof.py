"""Proof of naiad-tensorflow alone beside the kernel, in an environment of its own."""

import os
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf

from naiad_testing import serve

Path("models/double/1").mkdir(parents=True)
with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
    tf.add(x, x, name="y")
Path("models/double/1/model.graphdef").write_bytes(graph.as_graph_def().SerializeToString())
Path("models/double/config.pbtxt").write_text(
    'platform: "tensorflow_graphdef" output { name: "y" data_type: TYPE_FP32 dims: 2 }'
)
with serve("models") as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
