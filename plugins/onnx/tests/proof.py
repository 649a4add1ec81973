"""Proof of naiad-onnx alone beside the kernel; its argument is a repository with an ONNX model."""

import sys

from naiad_testing import serve

with serve(sys.argv[1]) as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
