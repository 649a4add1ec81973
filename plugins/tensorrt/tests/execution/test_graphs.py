"""CUDA graphs: captured when the executor is made, launched for the shapes that they serve."""

import logging

import numpy as np
import pytest

from naiad.errors import UnavailableError

from .engines import Bench, add_sub, graph, output, profile, rows, tensor
from .fake_tensorrt import FakeRtx, Strategy
from .test_shapes import finder


def of(count, least=None):
    """A graph of `add_sub` for so many rows, from `least` up."""
    lower = None if least is None else {"A": (least, 4), "B": (least, 4)}
    return graph({"A": (count, 4), "B": (count, 4)}, lower)


def run(executor, count, start=0):
    return executor.run({"A": rows(count, start), "B": rows(count, 3)}, 0)


def test_a_captured_shape_launches_its_graph():
    bench = add_sub()
    executor = bench.executor(graphs=(of(1), of(4)))
    executed = sum(context.executions for context in bench.engine.contexts)

    answers = [run(executor, count, start)["SUM"] for count, start in ((4, 0), (1, 5), (4, 9))]

    assert [answer.tolist() for answer in answers] == [
        (rows(count, start) + rows(count, 3)).tolist() for count, start in ((4, 0), (1, 5), (4, 9))
    ]
    assert bench.cuda.calls["launch_graph"] == 3
    assert sum(context.executions for context in bench.engine.contexts) == executed


def test_other_shapes_run_without_a_graph():
    bench = add_sub()
    executor = bench.executor(graphs=(of(4),))

    answer = run(executor, 3)

    assert answer["SUM"].tolist() == (rows(3) + rows(3, 3)).tolist()
    assert bench.cuda.calls["launch_graph"] == 0


def test_fewer_rows_are_filled_up_with_zeros_and_only_theirs_come_back():
    cuda_seen = []
    dims = (-1, 4)
    bench = Bench(
        [tensor("A", dims), tensor("B", dims), output("SUM", dims)],
        [profile(0, A=((1, 4), (8, 4)), B=((1, 4), (8, 4)))],
        lambda x: cuda_seen.append(np.array(x["A"])) or {"SUM": x["A"] + x["B"]},
    )
    executor = bench.executor(graphs=(of(8, 1),))
    run(executor, 8, 100)

    answer = run(executor, 3)

    assert answer["SUM"].tolist() == (rows(3) + rows(3, 3)).tolist()
    assert cuda_seen[-1].tolist() == np.concatenate([rows(3), np.zeros((5, 4), np.float32)]).tolist()
    assert bench.cuda.calls["launch_graph"] == 2


def test_the_graph_with_the_least_to_fill_up_serves():
    bench = add_sub()
    executor = bench.executor(graphs=(of(8, 1), of(4, 1), of(2, 2)))
    eight, four, two = bench.cuda.graphs

    for count in (3, 2, 5, 1):
        run(executor, count)

    assert bench.cuda.launched == [four, two, eight, four]


def test_inner_dims_are_filled_up_too():
    shape = {"X": (2, 3)}
    bench = Bench(
        [tensor("X", (-1, -1)), output("Y", (-1, -1))],
        [profile(0, X=((1, 1), (4, 4)))],
        lambda x: {"Y": x["X"] + 1},
    )
    executor = bench.executor(graphs=(graph(shape, {"X": (1, 1)}),))
    sent = np.array([[1, 2], [3, 4]], np.float32)

    answer = executor.run({"X": sent}, 0)

    assert answer["Y"].tolist() == [[2, 3], [4, 5]]
    assert bench.cuda.calls["launch_graph"] == 1


def test_graphs_have_contexts_of_their_own_over_one_workspace():
    bench = add_sub()
    executor = bench.executor(graphs=(of(1), of(2)))

    main, *others = bench.engine.contexts
    assert main.strategy is Strategy.STATIC
    assert [each.strategy for each in others] == [Strategy.USER_MANAGED] * 2
    assert others[0].workspace == others[1].workspace
    assert executor.memory_usage() == 1000 + 1000 + 2 * 4 * 256


def test_growing_batches_leave_graphs_as_they_are():
    bench = add_sub()
    executor = bench.executor(profiles=(0, 1), graphs=(of(1),))

    run(executor, 1)
    executor.run({"A": rows(32), "B": rows(32)}, 1)
    run(executor, 8)
    answer = run(executor, 1, 40)

    assert answer["SUM"].tolist() == (rows(1, 40) + rows(1, 3)).tolist()
    assert bench.cuda.calls["launch_graph"] == 2


def test_tensorrt_for_rtx_captures_by_itself_what_it_has_compiled_for_the_shapes():
    bench = add_sub()
    bench.trt = FakeRtx()
    executor = bench.executor(graphs=(of(1), of(4, 2)))

    answer = run(executor, 3)

    main, *others = [context.config for context in bench.engine.contexts]
    assert answer["SUM"].tolist() == (rows(3) + rows(3, 3)).tolist()
    assert (bench.cuda.calls["begin_capture"], bench.cuda.calls["launch_graph"]) == (0, 0)
    assert [context.executions for context in bench.engine.contexts] == [0, 2, 3]
    assert main.cuda_graph_strategy is FakeRtx.CudaGraphStrategy.DISABLED
    assert {each.cuda_graph_strategy for each in others} == {FakeRtx.CudaGraphStrategy.WHOLE_GRAPH_CAPTURE}
    assert {each.dynamic_shapes_kernel_specialization_strategy.name for each in others} == {"EAGER"}
    assert len({main.cache, *(each.cache for each in others)}) == 1


@pytest.mark.parametrize("failing", ["begin_capture", "end_capture"])
def test_a_graph_that_cannot_be_captured_is_a_warning(failing, caplog):
    bench = add_sub()
    bench.cuda.fail[failing] = 901
    with caplog.at_level(logging.WARNING, "naiad.tensorrt"):
        executor = bench.executor(graphs=(of(1), of(2)))

    answers = [run(executor, count)["SUM"].tolist() for count in (1, 2)]

    assert answers == [(rows(count) + rows(count, 3)).tolist() for count in (1, 2)]
    assert "no CUDA graph on profile 0 for the inputs 'A' [1, 4], 'B' [1, 4]" in caplog.text
    assert bench.cuda.calls["launch_graph"] == 1


def test_an_output_of_unknown_shape_has_no_graph(caplog):
    bench = finder()
    with caplog.at_level(logging.WARNING, "naiad.tensorrt"):
        executor = bench.executor(graphs=(graph({"IN": (3,)}),))

    answer = executor.run({"IN": np.array([0, 1, 1], np.float32)}, 0)

    assert answer["OUT"].tolist() == [[1], [2]]
    assert "the output 'OUT' depends on what the inputs hold" in caplog.text


def test_a_lost_device_ends_the_making_of_graphs():
    bench = add_sub()
    bench.cuda.fail["begin_capture"] = 719

    with pytest.raises(UnavailableError, match="GPU 0 cannot be used"):
        bench.executor(graphs=(of(1),))

    assert bench.cuda.open == 0
