"""A library executes batches: what it sees of requests, and what becomes of its answers."""

import numpy as np
import pytest

from naiad.batch import Batch
from naiad.types import Request
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.tensors import Tensor

NUMBERS = [name for name in TENSOR_TYPES if name != "BYTES"]


def tensors(kind="TYPE_FP32", dims=2, **more):
    text = f'input {{ name: "X" data_type: {kind} dims: {dims} }} output {{ name: "Y" data_type: {kind} dims: {dims} }}'
    return text + "".join(f' output {{ name: "{name}" data_type: {of} dims: 1 }}' for name, of in more.items())


@pytest.mark.parametrize("datatype", NUMBERS)
def test_numbers_of_every_datatype_go_through(workbench, compiler, datatype):
    kind = TENSOR_TYPES[datatype]
    model = workbench.serve(compiler.library("echo.c"), f"max_batch_size: 8 {tensors(kind.config.name, 3)}")
    array = np.array([[0, 1, 1], [1, 0, 0]], kind.dtype)

    (reply,) = model.execute({"X": Tensor("X", datatype, array.shape, array)})

    assert reply.outputs["Y"].dtype == array.dtype
    assert reply.outputs["Y"].tolist() == array.tolist()


def test_strings_go_through(workbench, compiler):
    model = workbench.serve(compiler.library("echo.c"), f"max_batch_size: 8 {tensors('TYPE_STRING')}")

    replies = model.execute({"X": [["a", ""]]}, {"X": [["\0\0", "naïve"], ["c", "d"]]})

    assert [reply.outputs["Y"].tolist() for reply in replies] == [
        [[b"a", b""]],
        [[b"\0\0", "naïve".encode()], [b"c", b"d"]],
    ]


@pytest.mark.parametrize("sizes", [(1,), (1, 1, 1), (2, 1, 3)])
@pytest.mark.parametrize("width", [2, 20_000])
def test_every_request_of_a_batch_gets_its_own_rows(workbench, compiler, sizes, width):
    model = workbench.serve(compiler.library("echo.c"), f"max_batch_size: 8 {tensors(dims=width)}")
    arrays = [np.full((size, width), at, np.float32) for at, size in enumerate(sizes)]

    replies = model.execute(*({"X": each} for each in arrays))

    assert all(np.array_equal(reply.outputs["Y"], each) for reply, each in zip(replies, arrays, strict=True))


def test_ragged_requests_keep_their_own_shapes(workbench, compiler):
    config = (
        'max_batch_size: 8 input { name: "X" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true } '
        'output { name: "Y" data_type: TYPE_FP32 dims: -1 }'
    )
    model = workbench.serve(compiler.library("echo.c"), config)

    replies = model.execute({"X": np.ones((1, 3), np.float32)}, {"X": np.zeros((1, 0), np.float32)})

    assert [reply.outputs["Y"].tolist() for reply in replies] == [[[1, 1, 1]], [[]]]


def test_an_array_in_order_is_not_copied(workbench, compiler):
    model = workbench.serve(compiler.library("echo.c"), tensors(PLACE="TYPE_INT64"))
    array = np.array([1, 2], np.float32)
    array.flags.writeable = False

    (reply,) = model.execute({"X": array})

    assert reply.outputs["PLACE"].tolist() == [array.ctypes.data]


def test_an_array_out_of_order_or_misaligned_is_brought_in_order(workbench, compiler):
    model = workbench.serve(compiler.library("echo.c"), tensors(PLACE="TYPE_INT64"))
    turned = np.array([[1, 9], [2, 9]], np.float32)[:, 0]
    shifted = np.frombuffer(b"?" + np.array([1, 2], np.float32).tobytes(), np.float32, offset=1)

    replies = [model.execute({"X": each})[0].outputs for each in (turned, shifted)]

    assert [each["Y"].tolist() for each in replies] == [[1, 2], [1, 2]]
    assert [int(each["PLACE"][0]) % 4 for each in replies] == [0, 0]


def test_a_library_sees_what_each_request_asks_for(workbench, compiler):
    model = workbench.serve(compiler.library("echo.c"), f"max_batch_size: 8 {tensors(TEXT='TYPE_STRING')}")
    x = {"X": Tensor.of("X", np.ones((1, 2), np.float32))}
    one = Request("m", x, id="é", parameters={"a": 1}, requested=("TEXT",))
    other = Request("m", x)

    answers = model.instance.execute(Batch([one, other], [1, 1]))

    assert [list(each.outputs) for each in answers] == [["TEXT"], ["Y", "TEXT"]]
    assert [each.outputs["TEXT"].item().decode() for each in answers] == [
        'é {"a": 1} 1 of 2: TEXT',
        " {} 1 of 2: Y TEXT",
    ]


def test_an_optional_input_that_is_not_given_is_not_there(workbench, compiler):
    config = tensors(PLACE="TYPE_INT64").replace("dims: 2 }", "dims: 2 optional: true }", 1)
    model = workbench.serve(compiler.library("echo.c"), config)

    (reply,) = model.instance.execute(Batch([Request("m", {}, requested=("PLACE",))], [1]))

    assert reply.outputs["PLACE"].tolist() == [0]


def test_memory_for_a_larger_batch_is_made_and_used_again(workbench, compiler):
    model = workbench.serve(compiler.library("echo.c"), f"max_batch_size: 64 {tensors()}")
    x = {"X": np.ones((1, 2), np.float32)}

    counts = [len(model.execute(*[x] * count)) for count in (1, 40, 3, 64)]

    assert counts == [1, 40, 3, 64]


def test_an_answer_stays_as_it_is_while_the_next_batch_runs(workbench, compiler):
    model = workbench.serve(compiler.library("echo.c"), tensors())

    (first,) = model.execute({"X": np.array([1, 2], np.float32)})
    (second,) = model.execute({"X": np.array([3, 4], np.float32)})

    assert (first.outputs["Y"].tolist(), second.outputs["Y"].tolist()) == ([1, 2], [3, 4])
