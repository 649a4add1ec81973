"""Tensors in shared memory: inputs are read from their regions, outputs are written to theirs."""

import numpy as np
import orjson
import pytest

from naiad.errors import InvalidArgumentError, NotFoundError
from naiad.types import Response, Tensor
from naiad_http.codec import AnswerForm, Decoder, Encoder, OutputForm
from naiad_http.codec.envelope import Envelope
from naiad_http.codec.forms import Place


class FakeRegion:
    """A region whose memory is a bytearray; like a real one it refuses what lies outside."""

    def __init__(self, name, content):
        self.name = name
        self.memory = bytearray(content)

    def check(self, offset, byte_size):
        if offset + byte_size > len(self.memory):
            raise InvalidArgumentError(f"outside of '{self.name}'")

    def read(self, offset, byte_size):
        self.check(offset, byte_size)
        return np.array(self.memory[offset : offset + byte_size], np.uint8)

    def write(self, offset, byte_size, content, output):
        joined = b"".join(content)
        if len(joined) > byte_size:
            raise InvalidArgumentError(f"'{output}' needs {len(joined)} bytes")
        self.memory[offset : offset + len(joined)] = joined


class Regions:
    """The regions of a server by their names, and a decoder over them."""

    def __init__(self):
        self.by_name = {}
        self.decoder = Decoder(1 << 20, lambda *_: None, self.find)

    def put(self, name, content):
        self.by_name[name] = FakeRegion(name, content)
        return self.by_name[name]

    def find(self, name):
        if name not in self.by_name:
            raise NotFoundError(f"Unable to find shared memory region: '{name}'")
        return self.by_name[name]

    def decode(self, document, content=None):
        text = orjson.dumps(document)
        length = None if content is None else len(text)
        return self.decoder.decode(Envelope("m", header_length=length), text, content or b"")


@pytest.fixture
def regions():
    return Regions()


def place(region="r", byte_size=None, offset=None):
    members = {"region": region, "byte_size": byte_size, "offset": offset}
    return {f"shared_memory_{key}": value for key, value in members.items() if value is not None}


def tensor(name="X", datatype="FP32", shape=(2,), parameters=None, **members):
    given = {"name": name, "datatype": datatype, "shape": list(shape), **members}
    return given if parameters is None else {**given, "parameters": parameters}


def output(name="Y", **parameters):
    return {"name": name, "parameters": parameters}


def test_an_input_is_read_from_its_place(regions):
    regions.put("r", bytes(4) + np.array([1.5, 2.5], np.float32).tobytes() + bytes(4))

    request, _ = regions.decode({"inputs": [tensor(shape=(1, 2), parameters=place("r", 8, 4))]})

    array = request.inputs["X"].array
    assert (array.dtype, array.shape, array.tolist()) == (np.float32, (1, 2), [[1.5, 2.5]])
    assert array.flags.aligned


def test_strings_and_booleans_are_read_from_shared_memory(regions):
    regions.put("strings", b"\x02\x00\x00\x00a\x00\x00\x00\x00\x00")
    regions.put("bits", b"\x00\x07")

    request, _ = regions.decode(
        {
            "inputs": [
                tensor("S", "BYTES", (2, 1), place("strings", 10)),
                tensor("B", "BOOL", (2,), place("bits", 2)),
            ]
        }
    )

    assert request.inputs["S"].array.tolist() == [[b"a\x00"], [b""]]
    assert request.inputs["B"].array.tolist() == [False, True]
    assert (~request.inputs["B"].array).tolist() == [True, False]


@pytest.mark.parametrize("datatype", ["FP32", "BYTES", "BOOL"])
def test_a_tensor_without_elements_takes_no_bytes(regions, datatype):
    regions.put("r", bytes(4))

    request, _ = regions.decode({"inputs": [tensor("X", datatype, (0, 3), place("r", 0))]})

    assert request.inputs["X"].array.shape == (0, 3)


def test_tensors_of_all_sources_may_be_mixed_and_keep_their_order(regions):
    regions.put("r", b"\x01\x02")
    sources = [
        tensor("shared", "INT8", (1,), place("r", 1, 1)),
        tensor("json", "INT8", (1,), data=[3]),
        tensor("binary", "INT8", (1,), {"binary_data_size": 1}),
        tensor("shared too", "INT8", (1,), place("r", 1)),
    ]

    request, _ = regions.decode({"inputs": sources}, b"\x04")

    values = {name: each.array.tolist() for name, each in request.inputs.items()}
    assert list(values.items()) == [("shared", [2]), ("json", [3]), ("binary", [4]), ("shared too", [1])]


def test_shared_and_binary_tensors_keep_their_order(regions):
    regions.put("r", b"\x01")
    sources = [tensor("S", "INT8", (1,), place("r", 1)), tensor("B", "INT8", (1,), {"binary_data_size": 1})]

    request, _ = regions.decode({"inputs": sources}, b"\x02")

    assert list(request.inputs) == ["S", "B"]


@pytest.mark.parametrize("content", [None, b""], ids=["all JSON", "JSON in front"])
def test_a_remembered_request_finds_the_region_that_has_the_name_now(regions, content):
    document = {"inputs": [tensor("X", "INT8", (1,), place("r", 1))], "outputs": [output(**place("r", 1))]}

    first = regions.put("r", b"\x01")
    before = regions.decode(document, content)
    second = regions.put("r", b"\x02")
    after = regions.decode(document, content)
    del regions.by_name["r"]

    assert [request.inputs["X"].array.tolist() for request, _ in (before, after)] == [[1], [2]]
    assert [form.outputs["Y"].place.region for _, form in (before, after)] == [first, second]
    with pytest.raises(NotFoundError, match="'r'"):
        regions.decode(document, content)


def test_a_remembered_request_sees_what_the_client_wrote_since(regions):
    region = regions.put("r", b"\x01")
    document = {"inputs": [tensor("X", "INT8", (1,), place("r", 1))]}

    before, _ = regions.decode(document)
    region.memory[0] = 2
    after, _ = regions.decode(document)

    assert [each.inputs["X"].array.tolist() for each in (before, after)] == [[1], [2]]


def test_requests_that_are_all_json_and_name_shared_memory_are_remembered(regions):
    regions.put("r", b"\x01")

    for number in range(3):
        request, _ = regions.decode({"id": str(number), "inputs": [tensor("X", "INT8", (1,), place("r", 1))]})
        assert request.id == str(number)
    regions.decode({"id": "9", "inputs": [tensor("X", "INT8", (1,), data=[1])]})

    assert len(regions.decoder._skeletons) == 1


def test_an_output_is_wanted_in_its_place_and_the_others_as_they_were(regions):
    region = regions.put("r", bytes(64))
    outputs = [
        output("A", binary_data=True),
        output("B", **place("r", 32, 8), binary_data=False),
        output("C", classification=2),
    ]

    request, form = regions.decode({"parameters": {"binary_data_output": True}, "inputs": [], "outputs": outputs})

    assert request.requested == ("A", "B", "C")
    assert form.unlisted == OutputForm(binary=True)
    assert form.outputs == {
        "A": OutputForm(binary=True),
        "B": OutputForm(place=Place(region, 8, 32)),
        "C": OutputForm(classes=2),
    }


WRONG = {
    "data and region": (
        {"inputs": [tensor(parameters=place("r", 8), data=[1, 2])]},
        "'shared_memory_region' in 'parameters'. But 'data' and 'shared_memory_region' are set: 'X'",
    ),
    "binary and region": (
        {"inputs": [tensor(parameters={**place("r", 8), "binary_data_size": 8})]},
        "But 'binary_data_size' and 'shared_memory_region' are set: 'X'",
    ),
    "all sources": (
        {"inputs": [tensor(parameters={**place("r", 8), "binary_data_size": 8}, data=[1])]},
        "But 'data' and 'binary_data_size' and 'shared_memory_region' are set: 'X'",
    ),
    "no source": ({"inputs": [tensor(parameters={"shared_memory_byte_size": 8})]}, "But no field is set: 'X'"),
    "size and shape": (
        {"inputs": [tensor(parameters=place("r", 12))]},
        "input byte size mismatch for input 'X' for model 'm'. Expected 8, got 12",
    ),
    "no size": (
        {"inputs": [tensor(parameters=place("r"))]},
        "input byte size mismatch for input 'X' for model 'm'. Expected 8, got 0",
    ),
    "strings": (
        {"inputs": [tensor("S", "BYTES", (1,), place("r", 3))]},
        "incomplete string length indicator for inference input 'S' for model 'm'",
    ),
    "input outside": ({"inputs": [tensor(parameters=place("r", 8, 60))]}, "outside of 'r'"),
    "output outside": ({"inputs": [], "outputs": [output(**place("r", 8, 60))]}, "outside of 'r'"),
    "name no string": ({"inputs": [tensor(parameters=place(7, 8))]}, "'shared_memory_region': it must be a string"),
    "offset negative": (
        {"inputs": [tensor(parameters=place("r", 8, -1))]},
        "'shared_memory_offset': it must be an int",
    ),
    "size a string": (
        {"inputs": [], "outputs": [output(**place("r", "8"))]},
        "'shared_memory_byte_size': it must be an integer",
    ),
    "shared and classes": (
        {"inputs": [], "outputs": [output(**place("r", 8), classification=1)]},
        "Output can't set both 'shared_memory_region' and 'classification', as 'Y' does",
    ),
    "shared and binary": (
        {"inputs": [], "outputs": [output(**place("r", 8), binary_data=True)]},
        "Output can't set both 'shared_memory_region' and 'binary_data', as 'Y' does",
    ),
    "output twice": (
        {"inputs": [], "outputs": [output(**place("r", 8)), output(binary_data=True)]},
        "output 'Y' already exists in request",
    ),
}


@pytest.mark.parametrize(("document", "told"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_request_is_refused_with_what_is_wrong(regions, document, told):
    regions.put("r", bytes(64))

    with pytest.raises(InvalidArgumentError) as caught:
        regions.decode(document)

    assert told in str(caught.value)


@pytest.mark.parametrize(
    "document",
    [{"inputs": [tensor(parameters=place("r", 8))]}, {"inputs": [], "outputs": [output(**place("r", 8))]}],
    ids=["input", "output"],
)
def test_a_region_must_be_registered(regions, document):
    with pytest.raises(NotFoundError, match="Unable to find shared memory region: 'r'"):
        regions.decode(document)


def encode(form, *tensors):
    encoder = Encoder(lambda *_: True, lambda *_: ())
    encoded = encoder.encode(Response("m", 1, "", {each.name: each for each in tensors}), form)
    return orjson.loads(encoded.text)["outputs"], b"".join(encoded.buffers)


def placed(region, byte_size, offset=0):
    return OutputForm(place=Place(region, offset, byte_size))


def test_an_output_is_written_to_its_place_and_its_json_only_tells_of_it():
    region = FakeRegion("r", b"." * 10)

    outputs, content = encode(AnswerForm(outputs={"Y": placed(region, 6, 2)}), Tensor.of("Y", np.array([[1, 2]], "i2")))

    assert outputs == [{"name": "Y", "datatype": "INT16", "shape": [1, 2]}]
    assert content == b""
    assert region.memory == b"..\x01\x00\x02\x00...."


def test_strings_are_written_with_their_lengths():
    region = FakeRegion("r", bytes(8))

    encode(AnswerForm(outputs={"Y": placed(region, 8)}), Tensor.of("Y", np.array([b"ab"], object)))

    assert region.memory == b"\x02\x00\x00\x00ab\x00\x00"


def test_large_tensors_that_are_not_contiguous_are_written_in_row_major_order():
    array = np.arange(90_000, dtype=np.float32).reshape(300, 300).T
    region = FakeRegion("r", bytes(array.nbytes))

    encode(AnswerForm(outputs={"Y": placed(region, array.nbytes)}), Tensor.of("Y", array))

    assert np.array_equal(np.frombuffer(region.memory, np.float32).reshape(300, 300), array)


def test_a_tensor_without_elements_is_written_as_nothing():
    region = FakeRegion("r", b"..")

    outputs, _ = encode(AnswerForm(outputs={"Y": placed(region, 0)}), Tensor.of("Y", np.zeros((0, 2), np.float32)))

    assert outputs == [{"name": "Y", "datatype": "FP32", "shape": [0, 2]}]
    assert region.memory == b".."


def test_outputs_of_all_forms_may_be_mixed():
    region = FakeRegion("r", bytes(1))
    forms = {"A": OutputForm(), "B": placed(region, 1), "C": OutputForm(binary=True)}

    outputs, content = encode(AnswerForm(outputs=forms), *(Tensor.of(name, np.array([7], np.int8)) for name in "ABC"))

    assert [list(each)[3:] for each in outputs] == [["data"], [], ["parameters"]]
    assert (content, bytes(region.memory)) == (b"\x07", b"\x07")


def test_an_output_that_needs_more_than_its_place_is_an_error():
    region = FakeRegion("r", bytes(8))

    with pytest.raises(InvalidArgumentError, match="'Y' needs 8 bytes"):
        encode(AnswerForm(outputs={"Y": placed(region, 4)}), Tensor.of("Y", np.zeros(2, np.float32)))
