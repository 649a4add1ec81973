"""Proof of naiad-tensorrt alone beside the kernel, in an environment of its own."""

import logging
import pathlib

import tensorrt_rtx_bindings as trt

from naiad.errors import NaiadError
from naiad_testing import serve

logging.disable()  # the refusal is logged and raised
folder = pathlib.Path("engines", "double", "1")
folder.mkdir(parents=True)
builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
network = builder.create_network(0)
x = network.add_input("x", trt.float32, (2,))
y = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
network.mark_output(y)
(folder / "model.plan").write_bytes(builder.build_serialized_network(network, builder.create_builder_config()))
try:
    with serve("engines") as client:
        (out,) = client.infer(x=[1, 2]).values()
        assert out.tolist() == [2, 4], out
except NaiadError as error:
    if "needs an NVIDIA GPU" not in str(error):
        raise
