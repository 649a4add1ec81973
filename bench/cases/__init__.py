"""The cases of the benchmark by name, in the order in which they run."""

from cases import (
    binary,
    cache,
    dashboard,
    ensemble,
    footprint,
    grpc_small,
    idle,
    isolated,
    json_bodies,
    large_tensors,
    mlps,
    observing,
    onnx_small,
    overheads,
    plugin_list,
    scheduler,
    sequences,
    shared,
    soak,
    streams,
)
from cases.case import Case

_CASES = (
    binary.CASE,
    json_bodies.CASE,
    *large_tensors.CASES,
    isolated.CASE,
    grpc_small.CASE,
    onnx_small.CASE,
    shared.CASE,
    streams.CASE,
    observing.CASE,
    dashboard.CASE,
    *mlps.CASES,
    overheads.CASE,
    cache.CASE,
    sequences.CASE,
    ensemble.CASE,
    scheduler.CASE,
    footprint.CASE,
    plugin_list.CASE,
    idle.CASE,
    soak.CASE,
)
CASES: dict[str, Case] = {case.name: case for case in _CASES}
