"""The cases of the benchmark by name, in the order in which they run."""

from cases import (
    binary,
    cache,
    ensemble,
    footprint,
    grpc_small,
    idle,
    json_bodies,
    large_tensors,
    observing,
    onnx_mlp,
    scheduler,
    sequences,
    shared,
    soak,
    streams,
)
from cases.case import Case

_MODULES = (
    binary,
    json_bodies,
    large_tensors,
    grpc_small,
    shared,
    streams,
    observing,
    onnx_mlp,
    cache,
    sequences,
    ensemble,
    scheduler,
    footprint,
    idle,
    soak,
)
CASES: dict[str, Case] = {module.CASE.name: module.CASE for module in _MODULES}
