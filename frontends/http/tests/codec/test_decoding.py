"""Bodies of infer requests become requests, without a copy, or errors that say what is wrong."""

import numpy as np
import orjson
import pytest

from naiad.errors import InvalidArgumentError, NaiadError
from naiad_http.codec import Decoder, OutputForm, ResponseForm
from naiad_http.codec.request_head import RequestHead
from naiad_tensors.laid_out import LaidOutInputs

LIMIT = 1 << 20


def decoder() -> Decoder:
    def no_config(name, version):
        raise AssertionError("only raw requests ask for the configuration")

    def no_shared_memory():
        raise AssertionError("only shared memory asks for regions")

    return Decoder(LIMIT, no_config, no_shared_memory)


def tensor(name="X", datatype="FP32", shape=(2,), **members):
    return {"name": name, "datatype": datatype, "shape": list(shape), **members}


def decode_json(document, **request_head):
    return decoder().decode(RequestHead("m", **request_head), orjson.dumps(document), b"")


def decode_binary(document, content, **request_head):
    front = orjson.dumps(document)
    return decoder().decode(RequestHead("m", header_length=len(front), **request_head), front, content)


def binary(name="X", datatype="FP32", shape=(2,), size=8, **members):
    return tensor(name, datatype, shape, parameters={"binary_data_size": size}, **members)


def test_json_numbers_become_an_array_of_their_shape():
    request, form = decode_json({"id": "7", "inputs": [tensor(shape=(1, 2), data=[[1.5, 2]])]}, version=3)

    array = request.inputs["X"].array
    assert (request.model_name, request.version, request.id) == ("m", 3, "7")
    assert (array.dtype, array.shape, array.tolist()) == (np.float32, (1, 2), [[1.5, 2.0]])
    assert form == ResponseForm(OutputForm())


def test_json_numbers_of_one_form_have_one_layout():
    def decode(number):
        inputs = [tensor(data=[number, 2]), tensor("Y", "INT64", (1, 3), data=[[4, 5, number]])]
        return decode_json({"inputs": inputs})[0].inputs

    first, second = decode(1), decode(7)

    assert isinstance(first, LaidOutInputs)
    assert isinstance(second, LaidOutInputs)
    assert first.layout is second.layout
    assert {name: each.array.tolist() for name, each in first.items()} == {"X": [1, 2], "Y": [[4, 5, 1]]}
    assert {name: each.array.tolist() for name, each in second.items()} == {"X": [7, 2], "Y": [[4, 5, 7]]}
    assert not second["Y"].array.flags.writeable


@pytest.mark.parametrize("count", [1, 2000])
def test_json_numbers_and_strings_keep_their_order(count):
    numbers = tensor("N", shape=(count,), data=[0.5] * count)

    request, _ = decode_json({"inputs": [tensor("S", "BYTES", (1,), data=["a"]), numbers, tensor("T", data=[1, 2])]})

    assert [(name, each.datatype) for name, each in request.inputs.items()] == [
        ("S", "BYTES"),
        ("N", "FP32"),
        ("T", "FP32"),
    ]
    assert request.inputs["N"].array.tolist() == [0.5] * count


def test_binary_tensors_are_views_on_the_received_bytes():
    content = np.arange(2, dtype=np.float32).tobytes() + np.arange(3, dtype=np.int64).tobytes()

    request, _ = decode_binary({"inputs": [binary("A"), binary("B", "INT64", (3,), 24)]}, content)

    first, second = request.inputs["A"].array, request.inputs["B"].array
    assert first.tolist() == [0, 1]
    assert second.tolist() == [0, 1, 2]
    assert np.shares_memory(first, np.frombuffer(content, np.uint8))
    assert np.shares_memory(second, np.frombuffer(content, np.uint8))


def test_numbers_that_lie_askew_are_copied_to_where_frameworks_can_read_them():
    content = b"\x01" + np.array([1.5, 2.5], np.float32).tobytes()

    request, _ = decode_binary({"inputs": [binary("A", "INT8", (1,), 1), binary("B")]}, content)

    assert request.inputs["B"].array.flags.aligned
    assert request.inputs["B"].array.tolist() == [1.5, 2.5]


def test_json_and_binary_inputs_may_be_mixed():
    content = np.array([5, 6], np.float32).tobytes()

    request, _ = decode_binary({"inputs": [tensor("J", "INT8", (1,), data=[4]), binary("B")]}, content)

    assert list(request.inputs) == ["J", "B"]
    assert request.inputs["J"].array.tolist() == [4]
    assert request.inputs["B"].array.tolist() == [5, 6]


def test_strings_may_hold_nul_bytes():
    content = b"\x03\x00\x00\x00a\x00b" + b"\x00\x00\x00\x00"

    request, _ = decode_binary({"inputs": [binary("S", "BYTES", (2, 1), len(content))]}, content)

    assert request.inputs["S"].array.tolist() == [[b"a\x00b"], [b""]]


def test_tensors_without_elements_are_fine_in_both_forms():
    as_json, _ = decode_json({"inputs": [tensor(shape=(0, 3), data=[])]})
    as_bytes, _ = decode_binary({"inputs": [binary(size=0, shape=(2, 0))]}, b"")

    assert as_json.inputs["X"].array.shape == (0, 3)
    assert as_bytes.inputs["X"].array.shape == (2, 0)


def test_any_byte_but_zero_is_true():
    request, _ = decode_binary({"inputs": [binary("B", "BOOL", (3,), 3)]}, b"\x00\x01\x07")

    array = request.inputs["B"].array
    assert array.tolist() == [False, True, True]
    assert (~array).tolist() == [True, False, False]


def test_parameters_of_the_protocol_and_of_the_caller_are_kept_apart():
    parameters = {
        "sequence_id": "user-1",
        "sequence_start": True,
        "sequence_end": False,
        "priority": 2,
        "timeout": 5000,
        "binary_data_output": True,
        "temperature": 0.5,
        "headers": "x",
        "top": 3,
        "greedy": False,
    }

    request, form = decode_json({"parameters": parameters, "inputs": []})

    assert (request.correlation_id, request.sequence_start, request.sequence_end) == ("user-1", True, False)
    assert (request.priority, request.timeout_microseconds) == (2, 5000)
    assert request.parameters == {"temperature": 0.5, "headers": "x", "top": 3, "greedy": False}
    assert form.unlisted == OutputForm(binary=True)


def test_a_priority_and_a_timeout_may_be_as_large_as_the_protocol_can_say():
    request, _ = decode_json({"parameters": {"priority": 2**64 - 1, "timeout": 2**64 - 1}, "inputs": []})

    assert (request.priority, request.timeout_microseconds) == (2**63 - 1, 2**64 - 1)


def test_forwarded_headers_become_parameters_and_win():
    request, _ = decode_json({"parameters": {"x-user": "forged", "k": 1}, "inputs": []}, forwarded={"x-user": "ada"})

    assert request.parameters == {"x-user": "ada", "k": 1}


def test_listed_outputs_have_a_form_of_their_own():
    outputs = [
        {"name": "A"},
        {"name": "B", "parameters": {"binary_data": True}},
        {"name": "C", "parameters": {"classification": 3}},
    ]

    request, form = decode_json({"parameters": {"binary_data_output": True}, "inputs": [], "outputs": outputs})

    assert request.requested == ("A", "B", "C")
    assert form.outputs == {"A": OutputForm(), "B": OutputForm(binary=True), "C": OutputForm(classes=3)}


def test_a_cached_header_gives_each_request_its_own_id_and_tensors():
    shared = decoder()

    def decode(request_id, values):
        front = orjson.dumps({"id": request_id, "inputs": [binary()]})
        return shared.decode(RequestHead("m", header_length=len(front)), front, np.array(values, np.float32).tobytes())[
            0
        ]

    requests = [decode("a", [1, 2]), decode("b", [3, 4]), decode("", [5, 6])]

    assert [request.id for request in requests] == ["a", "b", ""]
    assert [request.inputs["X"].array.tolist() for request in requests] == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("request_id", ['with "quotes"', "tab\t", "ünï", "\\", "id\u0000"])
def test_an_id_is_the_same_wherever_it_stands(request_id):
    in_front = {"id": request_id, "inputs": [binary()]}
    at_the_end = {"inputs": [binary()], "id": request_id}

    got = [decode_binary(document, bytes(8))[0].id for document in (in_front, at_the_end)]

    assert got == [request_id, request_id]


def test_of_two_ids_the_later_counts():
    front = b'{"id":"first","id":"second","inputs":[]}'

    request, _ = decoder().decode(RequestHead("m", header_length=len(front)), front, b"")

    assert request.id == "second"


def test_cached_headers_are_bounded():
    shared = decoder()

    for number in range(2000):
        front = orjson.dumps({"inputs": [binary(name=f"X{number}")]})
        shared.decode(RequestHead("m", header_length=len(front)), front, bytes(8))

    assert len(shared._templates) <= 512


WRONG = {
    "not JSON": (b"{", "failed to parse the request JSON buffer"),
    "binary without its length": (b'{"inputs":[]}\x00\x80\xff', "needs the header Inference-Header-Content-Length"),
    "not an object": (b"[]", "'request': it must be an object, not an array"),
    "no inputs": (b"{}", "Unable to parse 'inputs': the request has no member 'inputs'; it is a list"),
    "inputs no array": ({"inputs": 5}, "'inputs': it must be an array, not 5"),
    "input no object": ({"inputs": [1]}, "it must be an object"),
    "id a number": ({"id": 42, "inputs": []}, "'id': it must be a string, not 42"),
    "no name": ({"inputs": [{"datatype": "FP32", "shape": [1], "data": [1]}]}, "an input has no member 'name'"),
    "no datatype": ({"inputs": [{"name": "X", "shape": [1], "data": [1]}]}, "input 'X' has no member 'datatype'"),
    "unknown datatype": ({"inputs": [tensor(datatype="FP33", data=[1, 2])]}, "unknown datatype 'FP33' of input 'X'"),
    "negative shape": ({"inputs": [tensor(shape=(-1,), data=[1])]}, "must be integers from 0 up, got -1"),
    "boolean shape": ({"inputs": [tensor(shape=(True,), data=[1])]}, "must be integers from 0 up"),
    "too many dimensions": ({"inputs": [tensor(shape=(1,) * 65, data=[1])]}, "65 dimensions"),
    "elements overflow": (
        {"inputs": [tensor(shape=(2**40, 2**40), data=[1])]},
        "causes total element count to exceed maximum size of",
    ),
    "hidden overflow": ({"inputs": [tensor(shape=(0, 2**40, 2**40), data=[])]}, "total element count"),
    "strings overflow": (
        {"inputs": [tensor(datatype="BYTES", shape=(0, 2**60), data=[])]},
        "byte size overflow for input 'X'",
    ),
    "bytes overflow": ({"inputs": [tensor(shape=(2**61,), data=[1])]}, "byte size overflow for input 'X'"),
    "no source": ({"inputs": [tensor()]}, "Input must set only one of the following fields"),
    "two sources": (
        {"inputs": [tensor(data=[1, 2], parameters={"binary_data_size": 8})]},
        "Input must set only one of the following fields",
    ),
    "input twice": ({"inputs": [tensor(data=[1, 2])] * 2}, "input 'X' already exists in request"),
    "output twice": ({"inputs": [], "outputs": [{"name": "Y"}] * 2}, "output 'Y' already exists in request"),
    "classification negative": (
        {"inputs": [], "outputs": [{"name": "Y", "parameters": {"classification": -1}}]},
        "'classification': it must be an integer from 0",
    ),
    "binary_data a number": (
        {"inputs": [], "outputs": [{"name": "Y", "parameters": {"binary_data": 1}}]},
        "'binary_data': it must be true or false",
    ),
    "priority negative": ({"parameters": {"priority": -1}, "inputs": []}, "'priority': it must be an integer from 0"),
    "timeout a string": ({"parameters": {"timeout": "5"}, "inputs": []}, "'timeout': it must be an integer from 0"),
    "start a number": ({"parameters": {"sequence_start": 1}, "inputs": []}, "'sequence_start': it must be true or"),
    "sequence_id a float": ({"parameters": {"sequence_id": 1.5}, "inputs": []}, "'sequence_id': it must be an integer"),
    "reserved parameter": ({"parameters": {"triton_x": 1}, "inputs": []}, "are reserved for Triton usage"),
    "nested parameter": ({"parameters": {"k": [1]}, "inputs": []}, "parameter 'k' has invalid type"),
    "null parameter": ({"parameters": {"k": None}, "inputs": []}, "parameter 'k' has invalid type"),
    "wide parameter": ({"parameters": {"k": 2**63}, "inputs": []}, "does not fit a signed 64-bit integer"),
    "binary without bytes": ({"inputs": [binary()]}, "unexpected size for input 'X', expecting 8 additional bytes"),
}


@pytest.mark.parametrize(("document", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_request_is_refused_with_what_is_wrong(document, message):
    text = document if isinstance(document, bytes) else orjson.dumps(document)

    with pytest.raises(InvalidArgumentError) as caught:
        decoder().decode(RequestHead("m"), text, b"")

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("input_", "content", "message"),
    [
        (binary(), bytes(4), "unexpected size for input 'X', expecting 4 additional bytes for model 'm'"),
        (binary(), bytes(9), "unexpected additional input data for model 'm'"),
        (binary(size=12), bytes(12), "input byte size mismatch for input 'X' for model 'm'. Expected 8, got 12"),
        (binary("S", "BYTES", (1,), 3), b"\x01\x00\x00", "expecting 4 bytes but only 3"),
        (binary("S", "BYTES", (1,), 5), b"\x02\x00\x00\x00a", "length 2 but only 1 bytes"),
        (binary("S", "BYTES", (2,), 5), b"\x01\x00\x00\x00a", "expected 2 string elements"),
        (binary("S", "BYTES", (1,), 8), bytes(8), "string elements 2"),
    ],
)
def test_bytes_that_do_not_fit_their_description_are_refused(input_, content, message):
    with pytest.raises(InvalidArgumentError) as caught:
        decode_binary({"inputs": [input_]}, content)

    assert message in str(caught.value)


@pytest.mark.parametrize("length", [-5, 3, 1000])
def test_a_header_length_outside_the_body_is_refused(length):
    with pytest.raises(InvalidArgumentError, match=r"inference header size should be in range \(0, 13\), got: "):
        decoder().decode(RequestHead("m", header_length=length), b'{"inputs":[]}', b"")


@pytest.mark.parametrize("depth", [101, 1000, 10_000, 200_000])
@pytest.mark.parametrize("leaf", ["1", "NaN"])
def test_deep_nesting_is_an_error_and_no_crash(depth, leaf):
    nested = "[" * depth + leaf + "]" * depth
    text = f'{{"inputs":[{{"name":"X","datatype":"FP32","shape":[1],"data":{nested}}}]}}'.encode()

    with pytest.raises(NaiadError, match=r"JSON nesting depth exceeds maximum allowed limit \(100\)"):
        decoder().decode(RequestHead("m"), text, b"")


@pytest.mark.parametrize(("levels", "is_taken"), [(1023, True), (1024, False)])
def test_what_is_no_tensor_may_have_1024_levels(levels, is_taken):
    text = b'{"own":%b,"inputs":[]}' % (b"[" * levels + b"]" * levels)

    if is_taken:
        assert decoder().decode(RequestHead("m"), text, b"")[0].inputs == {}
    else:
        with pytest.raises(NaiadError, match="JSON nesting depth"):
            decoder().decode(RequestHead("m"), text, b"")


def test_a_hundred_levels_are_not_too_deep():
    nested = "[" * 100 + "1" + "]" * 100
    text = f'{{"inputs":[{{"name":"X","datatype":"FP32","shape":[1],"data":{nested}}}]}}'.encode()

    request, _ = decoder().decode(RequestHead("m"), text, b"")

    assert request.inputs["X"].array.tolist() == [1.0]


def test_bodies_that_differ_in_ids_and_contents_have_one_layout():
    repeated = decoder()
    inputs = []
    for request_id, content in (("1", bytes(8)), ("2", b"\x01" * 8)):
        front = orjson.dumps({"id": request_id, "inputs": [binary()]})
        request, _ = repeated.decode(RequestHead("m", header_length=len(front)), front, content)
        inputs.append(request.inputs)

    assert inputs[0].layout is inputs[1].layout


def test_inputs_of_which_some_are_in_the_json_have_no_layout():
    request, _ = decode_binary({"inputs": [binary("X"), tensor("Y", data=[1, 2])]}, bytes(8))

    assert type(request.inputs) is dict
