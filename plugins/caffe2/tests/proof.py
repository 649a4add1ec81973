"""Proof of naiad-caffe2 alone beside the kernel, in an environment of its own."""

from pathlib import Path

from naiad_testing import serve

Path("models/double/1").mkdir(parents=True)
Path("models/double/1/model.netdef").write_text(
    'op { input: "x" input: "x" output: "y" type: "Add" } external_input: "x" external_output: "y"'
)
Path("models/double/1/init_model.netdef").write_text("")
Path("models/double/config.pbtxt").write_text('input { name: "x" data_type: TYPE_FP32 dims: 2 }')
with serve("models") as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
