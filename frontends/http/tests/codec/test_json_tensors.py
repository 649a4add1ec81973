"""JSON `data` of every datatype and nesting."""

import re

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, TooLargeError
from naiad_http.codec.documents import parse
from naiad_http.codec.tensors import array_of_json
from naiad_tensors.datatypes import tensor_type

LIMIT = 1 << 20


def convert(data, datatype="FP32", count=1, limit=LIMIT):
    return array_of_json(data, "X", tensor_type(datatype), (count,), count, limit)


@pytest.mark.parametrize(
    ("datatype", "data"),
    [
        ("BOOL", [True, False]),
        ("UINT8", [0, 255]),
        ("UINT16", [0, 65535]),
        ("UINT32", [0, 2**32 - 1]),
        ("UINT64", [0, 2**64 - 1]),
        ("INT8", [-128, 127]),
        ("INT16", [-32768, 32767]),
        ("INT32", [-(2**31), 2**31 - 1]),
        ("INT64", [-(2**63), 2**63 - 1]),
        ("FP32", [-1.5, 3.4028234663852886e38]),
        ("FP64", [0.1, 1.7976931348623157e308]),
    ],
)
def test_each_datatype_keeps_its_whole_range(datatype, data):
    array = convert(data, datatype, 2)

    assert array.dtype == tensor_type(datatype).dtype
    assert array.tolist() == data


@pytest.mark.parametrize(
    ("datatype", "value"),
    [
        ("UINT8", 256),
        ("UINT8", -1),
        ("INT8", 128),
        ("INT8", -129),
        ("UINT16", 65536),
        ("INT16", -32769),
        ("UINT32", 2**32),
        ("INT32", 2**31),
        ("INT64", 2**63),
        ("UINT64", -1),
    ],
)
def test_an_integer_out_of_range_is_refused_and_not_truncated(datatype, value):
    with pytest.raises(InvalidArgumentError, match=f"has the value {value}, but {datatype} goes from"):
        convert([value], datatype)


@pytest.mark.parametrize(
    ("datatype", "value"),
    [
        ("INT32", 1.5),
        ("INT32", True),
        ("INT32", "1"),
        ("INT32", None),
        ("FP32", True),
        ("FP32", "1"),
        ("FP32", {}),
        ("BOOL", 1),
        ("BYTES", 1),
    ],
)
def test_a_value_of_another_type_is_refused(datatype, value):
    with pytest.raises(InvalidArgumentError, match="Unable to parse 'data': input 'X' takes"):
        convert([value], datatype)


def test_an_integer_beyond_64_bits_is_refused():
    data = parse(b"[18446744073709551616]")

    with pytest.raises(InvalidArgumentError, match="takes integers"):
        convert(data, "UINT64")


@pytest.mark.parametrize(("datatype", "value"), [("FP32", 1e39), ("FP32", -1e39), ("FP32", 10**39), ("FP64", 10**400)])
def test_a_number_too_large_for_its_datatype_is_refused(datatype, value):
    with pytest.raises(
        InvalidArgumentError, match=f"has the value {re.escape(str(value)[:5])}.*, but {datatype} goes from"
    ):
        convert([1.0, float("inf"), float("nan"), value], datatype, 4)


def test_not_a_number_and_the_infinities_are_bare_words():
    array = convert(parse(b"[NaN, Infinity, -Infinity, 1.5]"), "FP32", 4)

    np.testing.assert_array_equal(array, np.array([np.nan, np.inf, -np.inf, 1.5], np.float32))


@pytest.mark.parametrize(
    "data", [[1, 2, 3, 4], [[1, 2], [3, 4]], [[1], [2, 3, 4]], [1, [2, [3]], 4], [[[[1, 2, 3, 4]]]]]
)
def test_any_nesting_is_read_in_row_major_order(data):
    assert convert(data, "INT32", 4).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("data", [[1], [1, 2, 3], []])
def test_another_number_of_elements_than_the_shape_says_is_refused(data):
    with pytest.raises(InvalidArgumentError, match="Shape does not match true shape of 'data'"):
        convert(data, "INT32", 2)


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_half_floats_come_as_bytes_only(datatype):
    with pytest.raises(InvalidArgumentError, match=f"receiving {datatype} data via JSON is not supported"):
        convert([1.0], datatype)


def test_strings_become_utf8():
    assert convert(["a", "ü", ""], "BYTES", 3).tolist() == [b"a", "ü".encode(), b""]


def test_data_that_grows_beyond_the_limit_is_refused_with_the_option():
    with pytest.raises(TooLargeError, match="Use --http-max-input-size to increase the limit"):
        convert([1] * 10, "FP64", 10, limit=79)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'["\\ud800", NaN]',
        b"[1,]",
        b'"\xff"',
        b"[NaN",
        b"[Infinity] x",
        b"[NaN, " + b"9" * 5000 + b"]",
        b"\xef\xbb\xbf[NaN]",
    ],
)
def test_broken_json_is_a_clean_error(text):
    with pytest.raises(InvalidArgumentError, match="failed to parse the request JSON buffer"):
        parse(text)


@pytest.mark.parametrize(
    "text", [b"[1e400]", b"[NaN, 1e400]", b'{"id": "NaN", "data": [-1e400]}', b"[Infinity, 1e309, -Infinity]"]
)
def test_a_number_that_no_double_can_hold_is_refused_whatever_stands_beside_it(text):
    with pytest.raises(InvalidArgumentError, match="number is infinity when parsed as double"):
        parse(text)


def test_infinity_may_be_written_with_escapes_in_a_string():
    assert parse(b'["\\u0049nfinity", NaN, 1e308]')[0] == "Infinity"


def test_an_integer_of_thousands_of_digits_is_no_advice_on_python():
    with pytest.raises(InvalidArgumentError, match=r"an integer has too many digits for 64 bits$"):
        parse(b"[NaN, " + b"9" * 5000 + b"]")
