# ruff: noqa: F401 - pytest finds the functions here
"""The tests for a GPU where there is none: engines are built in truth, and numpy computes what they would.

Whatever is wrong in those tests, or in the way from a configuration to the executor, shows here first.
"""

import numpy as np
import pytest
import tensorrt_rtx_bindings as rtx

from naiad_tensorrt.backend import TensorRtBackend
from naiad_tensorrt.description import EngineDescription, Profile
from naiad_tensorrt.engines import OpenEngine
from naiad_tensorrt.execution import Executor
from naiad_testing.workbench import Workbench

from ..test_gpu import (
    test_a_shape_outside_the_profile_is_refused_and_the_next_one_runs,
    test_a_shape_tensor_decides_the_shape_of_the_output,
    test_batches_run_on_the_profile_that_takes_them,
    test_bf16_is_carried_as_its_bits,
    test_cuda_graphs_serve_what_lies_within_their_bounds,
    test_every_size_of_a_batch_and_of_its_rows_is_taken,
    test_every_way_of_working_gives_the_same,
    test_half_precision_is_carried,
    test_memory_is_counted_and_given_back,
    test_numbers_that_are_not_floats_are_carried,
    test_requests_are_computed_on_the_gpu_without_a_configuration,
    test_several_instances_execute_at_once,
)
from ..test_gpu_formats_and_states import (
    SUM,
    test_an_output_that_stayed_on_the_gpu_is_the_next_input,
    test_graphs_and_profiles_take_turns,
    test_tensors_are_laid_out_as_the_engine_wants_them,
)
from . import built
from .engines import output, profile, tensor
from .fake_cuda import FakeCuda
from .fake_tensorrt import FakeEngine, FakeTensorRt


@pytest.fixture
def trt():
    return rtx


@pytest.fixture
def machine():
    return RehearsalMachine()


@pytest.fixture
def bench(tmp_path, machine):
    return Workbench(tmp_path / "m", TensorRtBackend(machine), gpus=1)


def test_the_model_with_a_state_takes_it_with_every_batch(trt, bench):
    bench.path("model.plan").write_bytes(built.accumulator(trt))
    sent, state = np.array([[1], [2]], np.float32), np.array([[10], [20]], np.float32)

    answer = bench.load(SUM).execute({"IN": sent, "START": np.array([[1], [0]], np.float32), "STATE": state})

    assert answer["OUT"].tolist() == answer["STATE_OUT"].tolist() == [[1], [22]]


class RehearsalMachine:
    """A machine that knows the engines of the tests by their bytes; each executor has a device of its own."""

    def device_count(self):
        return 1

    def compute_capability(self, device):
        return "8.9"

    def open_engine(self, plan, model, device, opening):
        known = known_engines()
        if plan not in known:
            raise LookupError("this engine is not among those of the rehearsal")
        description, compute = known[plan]
        return OpenEngine(FakeTensorRt(), None, compute, description, weights=100)

    def executor(self, opened, options, device):
        cuda = FakeCuda()
        engine = FakeEngine(cuda, opened.description, opened.engine)
        return Executor(opened.trt, engine, opened.description, options, device, cuda)


def known_engines():
    """The description of each engine, and what it computes, by its bytes."""
    engines = {built.add_sub(rtx, kind): add_sub(kind) for kind in ("FLOAT", "HALF")}
    engines |= {built.copier(rtx, kind): copier(kind) for kind in ("INT32", "INT64", "BOOL", "BF16")}
    forms = (("HWC8", "HALF"), ("CHW2", "HALF"), ("CHW32", "FLOAT"))
    engines |= {built.image_adder(rtx, form, kind): image_adder(form, kind) for form, kind in forms}
    return engines | {built.stretcher(rtx): stretcher(), built.accumulator(rtx): accumulator()}


def add_sub(kind):
    names = [tensor(name, (-1, -1), kind) for name in ("A", "B")]
    names += [output(name, (-1, -1), kind) for name in ("SUM", "DIFFERENCE")]
    ranges = [((least, 1), (most, 8)) for least, most in ((1, 8), (9, 32))]
    profiles = tuple(profile(index, A=each, B=each) for index, each in enumerate(ranges))
    return EngineDescription(tuple(names), profiles), lambda x: {
        "SUM": x["A"] + x["B"],
        "DIFFERENCE": x["A"] - x["B"],
    }


def copier(kind):
    tensors = tensor("IN", (-1, 3), kind), output("OUT", (-1, 3), kind)
    return EngineDescription(tensors, (profile(0, IN=((1, 3), (4, 3))),)), lambda x: {"OUT": x["IN"]}


def image_adder(form, kind):
    dims, more = (3, 2, 2), {"format": form}
    tensors = tensor("IN", (-1, *dims), kind, **more), output("OUT", (-1, *dims), kind, **more)
    described = EngineDescription(tensors, (profile(0, IN=((1, *dims), (4, *dims))),))
    return described, lambda x: {"OUT": x["IN"] + x["IN"]}


def stretcher():
    size = tensor("SIZE", (2,), "INT64", is_shape_tensor=True, on_host=True)
    shapes = {"IN": ((1, 1), (2, 1), (4, 1)), "SIZE": ((2,),) * 3}
    fits = Profile(0, shapes, {"SIZE": ((1, 1), (2, 3), (4, 8))})
    return EngineDescription((tensor("IN", (-1, 1)), size, output("OUT", (-1, -1))), (fits,)), lambda x: {
        "OUT": np.ascontiguousarray(np.broadcast_to(x["IN"], tuple(x["SIZE"])))
    }


def accumulator():
    tensors = [tensor(name, (-1, 1)) for name in ("IN", "START", "STATE")]
    tensors += [output(name, (-1, 1)) for name in ("OUT", "STATE_OUT")]
    bounds = ((1, 1), (4, 1))

    def compute(x):
        out = x["IN"] + x["STATE"] * (1 - x["START"])
        return {"OUT": out, "STATE_OUT": out}

    return EngineDescription(tuple(tensors), (profile(0, IN=bounds, START=bounds, STATE=bounds),)), compute
