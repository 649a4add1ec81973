"""Runs of an engine: what goes in, what comes out, and what is kept from one to the next."""

import gc
import weakref
from contextlib import nullcontext

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, ModelFailedError
from naiad_tensors.datatypes import bf16_to_fp32, fp32_to_bf16

from .engines import Bench, add_sub, graph, output, profile, rows, tensor


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("apart", [True, False])
def test_outputs_are_computed_from_the_inputs(pinned, apart):
    bench = add_sub()
    executor = bench.executor(pinned_input=pinned, pinned_output=pinned, output_copy_stream=apart)

    answers = [executor.run({"A": rows(count), "B": rows(count, 5)}, 0) for count in (2, 8, 1)]

    for count, answer in zip((2, 8, 1), answers, strict=True):
        assert answer["SUM"].tolist() == (rows(count) + rows(count, 5)).tolist()
        assert answer["DIFFERENCE"].tolist() == [[-5.0] * 4] * count
    assert len(bench.cuda.queues) == (2 if apart else 1)
    assert bool(bench.cuda.pinned) == pinned


def test_inputs_of_any_memory_order_are_taken():
    executor = add_sub().executor(pinned_input=False)
    turned = np.asfortranarray(rows(3))
    turned.flags.writeable = False

    answer = executor.run({"A": turned, "B": rows(6)[::2]}, 0)

    assert answer["SUM"].tolist() == (rows(3) + rows(6)[::2]).tolist()


@pytest.mark.parametrize("pinned", [True, False])
def test_parts_are_joined_in_order(pinned):
    executor = add_sub().executor(pinned_input=pinned)
    parts = [rows(1), rows(2, 50), rows(1, 90)]

    answer = executor.run({"A": parts, "B": np.zeros((4, 4), np.float32)}, 0)

    assert answer["SUM"].tolist() == np.concatenate(parts).tolist()


def test_only_requested_outputs_are_copied():
    bench = add_sub()
    executor = bench.executor()

    answer = executor.run({"A": rows(2), "B": rows(2)}, 0, requested=("SUM",))

    assert list(answer) == ["SUM"]
    assert bench.cuda.calls["copy_to_host"] == 1


def test_each_profile_has_a_context_and_memory_of_its_own():
    bench = add_sub()
    executor = bench.executor(profiles=(0, 1))

    small = executor.run({"A": rows(2), "B": rows(2)}, 0)
    large = executor.run({"A": rows(20), "B": rows(20)}, 1)
    again = executor.run({"A": rows(2), "B": rows(2)}, 0)

    assert [context.profile for context in bench.engine.contexts] == [0, 1]
    assert large["SUM"].tolist() == (2 * rows(20)).tolist()
    assert small["SUM"].tolist() == again["SUM"].tolist() == (2 * rows(2)).tolist()


def test_a_profile_that_the_instance_does_not_have_is_refused():
    executor = add_sub().executor(profiles=(1,))

    with pytest.raises(InvalidArgumentError, match="profile 0 is not among those of this instance: 1"):
        executor.run({"A": rows(2), "B": rows(2)}, 0)


def test_memory_grows_with_the_batches_and_stays():
    bench = add_sub()
    executor = bench.executor()
    wished = []
    for count in (1, 8, 2):
        executor.run({"A": rows(count), "B": rows(count)}, 0)
        wished.append(bench.cuda.calls["allocate"])

    assert wished == [4, 4, 4]
    assert executor.memory_usage() == 4 * 256 + 1000


def test_buffers_that_grow_at_least_double():
    wide = [tensor("X", (-1, 100)), output("Y", (-1, 100))]
    bench = Bench(wide, [profile(0, X=((1, 100), (99, 100)))], lambda x: {"Y": x["X"]})
    executor = bench.executor()

    answers = [executor.run({"X": np.full((count, 100), count, np.float32)}, 0)["Y"] for count in (1, 2, 3, 4)]

    assert [answer.mean() for answer in answers] == [1, 2, 3, 4]
    assert executor.memory_usage() == 2 * 1600 + 1000
    assert bench.cuda.calls["allocate"] == 6


@pytest.mark.parametrize("kind", ["HALF", "INT8", "INT32", "INT64", "UINT8"])
def test_every_number_type_is_carried(kind):
    dtype = {"HALF": np.float16}.get(kind, kind.lower())
    executor = add_sub(kind).executor()

    answer = executor.run({"A": rows(3, 9, dtype), "B": rows(3, 1, dtype)}, 0)

    assert answer["SUM"].dtype == dtype
    assert answer["SUM"].tolist() == (rows(3, 9) + rows(3, 1)).tolist()


def test_bf16_is_carried_as_its_bits():
    bench = Bench(
        [tensor("X", (2,), "BF16"), output("Y", (2,), "BF16")],
        [profile(0, X=((2,), (2,)))],
        lambda x: {"Y": fp32_to_bf16(bf16_to_fp32(x["X"]) * 2)},
    )

    answer = bench.executor().run({"X": fp32_to_bf16(np.array([1.5, -2.0], np.float32))}, 0)

    assert answer["Y"].dtype == np.uint16
    assert bf16_to_fp32(answer["Y"]).tolist() == [3.0, -4.0]


@pytest.mark.parametrize("pinned", [True, False])
def test_bools_scalars_and_empty_tensors_are_carried(pinned):
    bench = Bench(
        [tensor("X", (-1,), "BOOL"), tensor("S", ()), output("Y", (-1,), "BOOL"), output("T", ())],
        [profile(0, X=((0,), (4,)), S=((), ()))],
        lambda x: {"Y": ~x["X"], "T": np.asarray(x["S"] + 1)},
    )
    executor = bench.executor(pinned_input=pinned, pinned_output=pinned)

    some = executor.run({"X": np.array([True, False]), "S": np.array(3, np.float32)}, 0)
    none = executor.run({"X": np.zeros(0, bool), "S": np.array(4, np.float32)}, 0)

    assert (some["Y"].tolist(), some["T"].shape, float(some["T"])) == ([False, True], (), 4.0)
    assert (none["Y"].shape, float(none["T"])) == ((0,), 5.0)


@pytest.mark.parametrize("form", ["CHW2", "CHW4", "CHW16", "CHW32", "HWC", "HWC8", "HWC16"])
def test_tensors_of_other_formats_are_laid_out_and_back(form):
    dims = (-1, 5, 2, 3)
    more = {"format": form, "vectorized_dim": 1, "components": 4}
    bench = Bench(
        [tensor("X", dims, "HALF", **more), output("Y", dims, "HALF", **more)],
        [profile(0, X=((1, 5, 2, 3), (4, 5, 2, 3)))],
        lambda x: {"Y": x["X"] * 2},
    )
    sent = np.arange(60, dtype=np.float16).reshape(2, 5, 2, 3)

    answer = bench.executor().run({"X": sent}, 0)

    assert answer["Y"].tolist() == (sent * 2).tolist()
    assert answer["Y"].flags.c_contiguous


def test_everything_is_given_back():
    bench = add_sub()
    fours = {"A": (4, 4), "B": (4, 4)}
    executor = bench.executor(profiles=(0, 1), output_copy_stream=True, graphs=(graph(fours),))
    executor.run({"A": rows(2), "B": rows(2)}, 0)
    executor.run({"A": rows(4), "B": rows(4)}, 0)

    executor.close()
    executor.close()

    assert bench.cuda.open == 0


@pytest.mark.parametrize("refuses", [True, False])
def test_nothing_of_what_was_given_is_held_after_a_run(refuses):
    bench = add_sub()
    executor = bench.executor(pinned_input=False)
    bench.engine.refuses = refuses
    sent = rows(2)
    seen = weakref.ref(sent)

    with pytest.raises(ModelFailedError) if refuses else nullcontext():
        executor.run({"A": sent, "B": rows(2)}, 0)
    del sent
    gc.collect()

    assert seen() is None


def test_marks_come_after_the_inputs_and_after_the_execution():
    bench = add_sub()
    seen = []

    class Marks:
        def mark_input_done(self):
            seen.append(("input", bench.engine.contexts[0].executions))

        def mark_infer_done(self):
            seen.append(("infer", len(bench.cuda.queues[next(iter(bench.cuda.queues))])))

    bench.executor().run({"A": rows(1), "B": rows(1)}, 0, marks=Marks())

    assert seen == [("input", 0), ("infer", 2)]
