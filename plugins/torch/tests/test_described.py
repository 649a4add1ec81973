"""What a package tells of its tensors, and shapes that are held against it."""

import pytest

from naiad.errors import InvalidArgumentError
from naiad_config import DataType
from naiad_torch.described import UNLIMITED, Described, check_shapes, most_rows
from naiad_torch.generated import read_arguments, weight_bytes
from naiad_torch.runtime import describe_error
from naiad_torch.sizes import follows, is_expression


def of(*sizes, least=(), most=()):
    return Described("x", "float32", sizes, least, most)


TWO = [of("s0", 4), of("s0", "")]


def test_what_varies_is_minus_one_for_everybody_else():
    tensor = Described("x", "bfloat16", ("rows", 4, ""), most=(8,)).as_model_tensor("INPUT__0")

    assert (tensor.name, tensor.data_type, tensor.shape) == ("INPUT__0", DataType.TYPE_BF16, (-1, 4, -1))


def test_the_rows_of_all_tensors_are_those_of_the_smallest():
    fixed, small = Described("x", "float32", (4,)), Described("x", "float32", ("s0",), most=(6,))

    assert most_rows([fixed, small, Described("x", "float32", ("s0",), most=(7,))]) == 6
    assert most_rows([fixed]) == UNLIMITED


@pytest.mark.parametrize("shapes", [[(2, 4), (2, 3)], [(5, 4), None], [None, (1, 9)]])
def test_shapes_that_the_model_was_made_for_pass(shapes):
    check_shapes(["a", "b"], TWO, shapes, "m", "model.pt2")


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(2, 5), (2, 3)], r"'a' of model 'm' has shape \[2,5\], and model.pt2 takes \[2,4\]"),
        ([(2, 4), (3, 3)], r"'b' of model 'm' has shape \[3,3\], and model.pt2 takes \[2,-1\]"),
        ([(2, 4), (2,)], r"'b' of model 'm' has shape \[2\], and model.pt2 takes \[2,-1\]"),
    ],
)
def test_other_shapes_are_refused_before_compiled_code_sees_them(shapes, message):
    with pytest.raises(InvalidArgumentError, match=message):
        check_shapes(["a", "b"], TWO, shapes, "m", "model.pt2")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((9, 8, 4), r"'x' of model 'm' has shape \[9,8,4\], and model.pt2 takes at most 8 in dim 0 of it"),
        ((1, 17, 4), r"\[1,17,4\], and model.pt2 takes at most 16 in dim 1 of it"),
        ((1, 3, 4), r"\[1,3,4\], and model.pt2 takes at least 4 in dim 1 of it"),
    ],
)
def test_sizes_beyond_a_limit_of_any_dim_are_refused_before_compiled_code_reads_other_memory(shape, message):
    with pytest.raises(InvalidArgumentError, match=message):
        check_shapes(["x"], [of("s0", "s1", 4, least=(2, 4, 4), most=(8, 16, 4))], [shape], "m", "model.pt2")


@pytest.mark.parametrize("shape", [(1, 16, 4), (8, 4, 4), (0, 5, 4)])
def test_sizes_within_the_limits_pass_and_so_does_one_row_for_which_pytorch_writes_two(shape):
    check_shapes(["x"], [of("s0", "s1", 4, least=(2, 4, 4), most=(8, 16, 4))], [shape], "m", "model.pt2")


@pytest.mark.parametrize(
    ("expression", "size", "fits"),
    [
        ("2*s0", 6, True),
        ("2*s0", 7, False),
        ("1 + (s0*s1)", 13, True),
        ("s0 - 4", 0, False),
        ("3*s2 - 1", 5, True),
        ("3*s2 - 1", 6, False),
        ("s2*s3", 6, True),
    ],
)
def test_a_size_that_follows_from_others_is_computed(expression, size, fits):
    assert follows(expression, size, {"s0": 3, "s1": 4}) is fits


def test_a_size_that_names_no_other_input_binds_its_own():
    bound = {}

    assert follows("2*s0", 6, bound)
    assert follows("3*s0 + 1", 10, bound)
    assert not follows("3*s0 + 1", 11, bound)


def test_sizes_that_follow_from_others_are_checked():
    with pytest.raises(InvalidArgumentError, match=r"'a' of model 'm' has shape \[5\], .* takes \[2\*s0\], s0 being 2"):
        check_shapes(["a", "b"], [of("2*s0"), of("s0")], [(5,), (2,)], "m", "model.pt2")


@pytest.mark.parametrize("text", ["s0 // 2", "c10::div_floor_integer(s0, 2)", "s0(2)", "f'{s0}'", "2**s0", "1.5", ""])
def test_other_expressions_are_unknown(text):
    assert not is_expression(text)


@pytest.mark.parametrize(
    "index",
    [
        "\nException raised from meta at x.cpp:1\nframe #0: ...",
        "\n\nfrom user code:\n   File 'model.py', line 12, in forward",
        "\n\nSet TORCHDYNAMO_VERBOSE=1 for the internal stack trace",
    ],
)
def test_where_in_the_code_an_error_was_is_not_reported(index):
    assert describe_error(RuntimeError(f"mat1 and mat2 (1x3 and 4x2){index}")) == "mat1 and mat2 (1x3 and 4x2)"


SOURCE = """
    constants_info_[0].data_size = 64;
    constants_info_[1].data_size = 128;
AOTI_NOINLINE static void check_input_1(
    AtenTensorHandle* input_handles
) {
    ConstantHandle arg3_1 = ConstantHandle(input_handles[1]);
    int32_t arg3_1_expected_dtype = aoti_torch_dtype_int64();
    if (arg3_1_size[0] < 16) {
    }
    if (arg3_1_size[0] > 64) {
    }
}

AOTI_NOINLINE static void check_input_0(
    AtenTensorHandle* input_handles
) {
    ConstantHandle arg2_1 = ConstantHandle(input_handles[0]);
    int32_t arg2_1_expected_dtype = aoti_torch_dtype_float16();
}

    assert_size_stride(arg2_1, {3L, 2L*s1}, {4L, 1L}, "input");
    assert_size_stride(arg3_1, {s52, 4L}, {4L, 1L}, "input");
"""


def test_the_source_in_a_package_tells_of_its_arguments():
    assert read_arguments(SOURCE, 2) == (
        Described("INPUT__0", "float16", (3, "2*s1"), (3, 1), (3, UNLIMITED)),
        Described("INPUT__1", "int64", ("s52", 4), (16, 4), (64, 4)),
    )
    assert weight_bytes(SOURCE) == 192


@pytest.mark.parametrize(
    ("source", "count"), [("", 1), (SOURCE, 3), (SOURCE.replace("assert_size_stride(arg3_1", ""), 2)]
)
def test_an_incomplete_source_gives_no_descriptions(source, count):
    assert read_arguments(source, count) == ()
