"""What a failed run leaves behind, and what it says."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, ModelFailedError, UnavailableError, UnsupportedError
from naiad_config import ModelPriority
from naiad_tensorrt.execution.cuda import CudaError
from naiad_tensorrt.execution.failures import failure_of
from naiad_tensorrt.execution.streams import stream_priority

from .engines import Bench, add_sub, output, profile, rows, tensor
from .fake_cuda import FakeCuda
from .fake_tensorrt import Strategy


def run(executor, count=2):
    return executor.run({"A": rows(count), "B": rows(count)}, 0)


def test_an_execution_that_tensorrt_refuses_fails_and_the_next_one_runs():
    bench = add_sub()
    executor = bench.executor()
    bench.engine.refuses = True

    with pytest.raises(ModelFailedError, match="TensorRT did not execute the engine on profile 0"):
        run(executor)
    bench.engine.refuses = False

    assert executor.ready() == ""
    assert run(executor)["SUM"].tolist() == (2 * rows(2)).tolist()


def test_a_lost_device_is_reported_from_then_on():
    bench = add_sub()
    executor = bench.executor()
    bench.cuda.fail["wait_event"] = 700

    with pytest.raises(UnavailableError, match="GPU 0 cannot be used by this process any more; restart the server"):
        run(executor)

    assert "CUDA error 700" in executor.ready()
    with pytest.raises(UnavailableError, match="CUDA error 700"):
        run(executor)


def test_an_error_of_the_device_that_comes_late_is_seen():
    bench = add_sub()
    executor = bench.executor()
    bench.engine.refuses = True
    bench.cuda.fail["synchronize_stream"] = 719

    with pytest.raises(UnavailableError, match="restart the server"):
        run(executor)


def test_another_error_of_cuda_leaves_the_executor_usable():
    bench = add_sub()
    executor = bench.executor()
    bench.cuda.fail["copy_to_device"] = 1

    with pytest.raises(ModelFailedError, match="copy_to_device failed"):
        run(executor)

    assert run(executor)["DIFFERENCE"].tolist() == [[0.0] * 4] * 2


def test_too_little_memory_for_a_batch_leaves_smaller_ones():
    dims = (-1, 100)
    bench = Bench(
        [tensor("X", dims), output("Y", dims)],
        [profile(0, X=((1, 100), (99, 100)))],
        lambda x: {"Y": x["X"]},
        cuda=FakeCuda(room=4000),
    )
    executor = bench.executor()
    executor.run({"X": np.ones((1, 100), np.float32)}, 0)

    with pytest.raises(UnavailableError, match=r"GPU 0 has too little memory.*lower max_batch_size"):
        executor.run({"X": np.ones((90, 100), np.float32)}, 0)

    assert executor.run({"X": np.ones((2, 100), np.float32)}, 0)["Y"].sum() == 200


def test_an_engine_that_gives_no_context_is_refused_and_leaves_nothing():
    bench = add_sub()
    bench.engine.makes_contexts = False

    with pytest.raises(ModelFailedError, match="TensorRT made no execution context for profile 0"):
        bench.executor()

    assert bench.cuda.open == 0


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"A": rows(2)}, "the engine needs the input 'B'"),
        ({"A": rows(2), "B": rows(2).astype(np.float64)}, "input 'B' has elements of float64.*takes FLOAT"),
        ({"A": [rows(2), rows(2)[:, :3]], "B": rows(4)}, r"input 'A' comes in parts of the shapes \[2, 4\], \[2, 3\]"),
    ],
)
def test_what_the_engine_does_not_take_is_the_callers_error(sent, message):
    with pytest.raises(InvalidArgumentError, match=message):
        add_sub().executor().run(sent, 0)


def test_types_that_no_request_can_carry_are_refused():
    bench = Bench([tensor("X", (2,), "FP8"), output("Y", (2,))], [profile(0, X=((2,), (2,)))], lambda x: {})

    with pytest.raises(UnsupportedError, match="tensor 'X' of the engine has the type FP8"):
        bench.executor().run({"X": np.zeros(2, np.float32)}, 0)


def test_a_failure_repeats_what_tensorrt_logged():
    error = failure_of(RuntimeError("bad"), ["no kernel for layer 3"], 0)

    assert isinstance(error, ModelFailedError)
    assert str(error) == "TensorRT failed: bad: no kernel for layer 3"


def test_errors_of_cuda_know_which_end_the_process():
    assert CudaError("", 700).is_fatal
    assert not CudaError("", 2).is_fatal
    assert CudaError("", 2).is_out_of_memory


@pytest.mark.parametrize(
    ("strategy", "memory"), [("STATIC", 2000), ("ON_PROFILE_CHANGE", 100 + 200), ("USER_MANAGED", 1000)]
)
def test_contexts_have_their_memory_as_the_strategy_says(strategy, memory):
    bench = add_sub()
    executor = bench.executor(profiles=(0, 1), allocation_strategy=strategy)

    assert {context.strategy for context in bench.engine.contexts} == {Strategy[strategy]}
    assert executor.memory_usage() == memory


@pytest.mark.parametrize(
    ("priority", "number"),
    [(ModelPriority.PRIORITY_DEFAULT, 0), (ModelPriority.PRIORITY_MAX, -5), (ModelPriority.PRIORITY_MIN, 0)],
)
def test_streams_have_the_priority_of_the_model(priority, number):
    bench = add_sub()
    bench.executor(priority=priority)

    assert bench.cuda.priorities == [number]


def test_the_usual_priority_is_one_that_the_device_has():
    assert stream_priority(ModelPriority.PRIORITY_DEFAULT, -1, -3) == -1
    assert stream_priority(ModelPriority.PRIORITY_MIN, 2, -3) == 2


@pytest.mark.parametrize("busy", [True, False])
def test_events_sleep_unless_they_are_to_wait_busily(busy):
    bench = add_sub()
    bench.executor(busy_wait_events=busy)

    assert set(bench.cuda.blocking_events) == {not busy}
