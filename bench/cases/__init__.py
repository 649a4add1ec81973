"""The cases of the benchmark by name, in the order in which they run."""

from cases import binary, footprint, json_bodies, large_tensors, onnx_mlp, scheduler
from cases.case import Case

CASES: dict[str, Case] = {
    module.CASE.name: module.CASE for module in (binary, json_bodies, large_tensors, onnx_mlp, scheduler, footprint)
}
