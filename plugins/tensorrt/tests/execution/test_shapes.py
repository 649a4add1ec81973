"""Shapes that the engine resolves: shape tensors, what outputs follow from them, and outputs of unknown shape."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, ModelFailedError, UnavailableError, UnsupportedError
from naiad_tensorrt.description import Profile

from .engines import Bench, add_sub, output, profile, rows, tensor
from .fake_cuda import FakeCuda


def reshaper(kind="INT64"):
    """OUT = IN in the shape that SHAPE says; SIZES is that shape again."""
    on_host = {"is_shape_tensor": True, "on_host": True}
    tensors = [tensor("IN", (-1,)), tensor("SHAPE", (2,), kind, **on_host)]
    tensors += [output("OUT", (-1, -1)), output("SIZES", (2,), kind, **on_host)]
    fits = Profile(0, {"IN": ((1,), (6,), (12,)), "SHAPE": ((2,),) * 3}, {"SHAPE": ((1, 1), (2, 3), (12, 12))})
    return Bench(tensors, [fits], lambda x: {"OUT": x["IN"].reshape(tuple(x["SHAPE"])), "SIZES": np.array(x["SHAPE"])})


def finder(cuda=None):
    """OUT = the places of what is not 0 in IN."""
    return Bench(
        [tensor("IN", (-1,)), output("OUT", (-1, 1), "INT64")],
        [profile(0, IN=((1,), (200,)))],
        lambda x: {"OUT": np.argwhere(x["IN"])},
        late=("OUT",),
        cuda=cuda,
    )


@pytest.mark.parametrize("kind", ["INT32", "INT64"])
def test_a_shape_tensor_is_read_on_the_host(kind):
    executor = reshaper(kind).executor()
    dtype = kind.lower()

    answers = [
        executor.run({"IN": np.arange(6, dtype=np.float32), "SHAPE": np.array(shape, dtype)}, 0)
        for shape in ((2, 3), (3, 2), (2, 3))
    ]

    assert [answer["OUT"].shape for answer in answers] == [(2, 3), (3, 2), (2, 3)]
    assert [answer["SIZES"].tolist() for answer in answers] == [[2, 3], [3, 2], [2, 3]]
    assert answers[0]["SIZES"].dtype == dtype


def test_shapes_that_do_not_fit_together_are_the_callers_error_and_the_next_run_is_right():
    executor = reshaper().executor()
    executor.run({"IN": np.zeros(6, np.float32), "SHAPE": np.array([2, 3])}, 0)

    with pytest.raises(InvalidArgumentError, match=r"the inputs 'IN' \[6\], 'SHAPE' \[2\] do not fit together"):
        executor.run({"IN": np.zeros(6, np.float32), "SHAPE": np.array([4, 3])}, 0)
    answer = executor.run({"IN": np.ones(6, np.float32), "SHAPE": np.array([2, 3])}, 0)

    assert answer["OUT"].tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize("sent", [(9, 4), (2, 3), (2, 4, 1), (0, 4)])
def test_a_shape_that_the_profile_does_not_hold_is_refused_with_both_shapes(sent):
    executor = add_sub().executor()

    with pytest.raises(InvalidArgumentError) as caught:
        executor.run({"A": np.zeros(sent, np.float32), "B": rows(2)}, 0)

    assert f"input 'A' has the shape {list(sent)}, and profile 0 of the engine takes [1, 4] to [8, 4]" in str(
        caught.value
    )
    assert executor.run({"A": rows(2), "B": rows(2)}, 0)["SUM"].tolist() == (2 * rows(2)).tolist()


def test_the_engine_tells_the_shape_of_an_output_when_it_runs():
    executor = finder().executor()

    answers = [executor.run({"IN": np.arange(count, dtype=np.float32) % 3}, 0)["OUT"] for count in (1, 4, 200, 2)]

    assert [answer.ravel().tolist() for answer in answers] == [
        [index for index in range(count) if index % 3] for count in (1, 4, 200, 2)
    ]
    assert answers[0].shape == (0, 1)


def test_an_output_on_the_host_of_a_shape_that_is_not_known_is_refused():
    bench = reshaper()
    bench.engine.late = ("SIZES",)

    with pytest.raises(UnsupportedError, match=r"the output 'SIZES' lies on the host and has the shape \[-1\]"):
        bench.executor().run({"IN": np.ones(6, np.float32), "SHAPE": np.array([2, 3])}, 0)


def test_an_engine_that_does_not_know_the_shape_after_the_run_either_has_failed():
    bench = finder()
    executor = bench.executor()
    bench.engine.tells = lambda shape: (-1, 1)

    with pytest.raises(ModelFailedError, match=r"TensorRT reported the shape \[-1, 1\] for the output 'OUT'"):
        executor.run({"IN": np.ones(3, np.float32)}, 0)


def test_too_little_memory_for_such_an_output_says_so_and_leaves_the_executor_usable():
    executor = finder(FakeCuda(room=1500)).executor()

    with pytest.raises(UnavailableError, match="too little memory"):
        executor.run({"IN": np.ones(200, np.float32)}, 0)

    assert executor.run({"IN": np.ones(1, np.float32)}, 0)["OUT"].tolist() == [[0]]


def test_a_later_failure_is_not_blamed_on_memory():
    bench = finder(FakeCuda(room=1500))
    executor = bench.executor()
    with pytest.raises(UnavailableError):
        executor.run({"IN": np.ones(200, np.float32)}, 0)
    bench.engine.refuses = True

    with pytest.raises(ModelFailedError, match="did not execute"):
        executor.run({"IN": np.ones(2, np.float32)}, 0)
