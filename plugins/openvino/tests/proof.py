"""Proof of naiad-openvino alone beside the kernel; its argument is a repository with an ONNX model."""

import sys
from pathlib import Path

from naiad_testing import serve

folder = Path(sys.argv[1]) / "double"
(folder / "config.pbtxt").write_text('backend: "openvino" default_model_filename: "model.onnx"')
with serve(sys.argv[1]) as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
