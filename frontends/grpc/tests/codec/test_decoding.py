"""Messages become requests, without a copy, or errors that say what is wrong."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_grpc.codec import Decoder, OutputForm, ResponseForm, request_id_of

FLOATS = np.array([1.5, 2.5], np.float32)


@pytest.fixture
def plain(ask):
    """A message as clients send it; the id moves what follows it."""

    def make(request_id="", content=FLOATS, **members):
        return ask(("X", "FP32", [2]), raw=[content.tobytes()], id=request_id, **members).SerializeToString()

    return make


def test_a_message_becomes_a_request(decoder, ask):
    message = ask(("A", "INT8", [1, 2]), ("B", "FP64", [1]), raw=[b"\x01\xff", np.array([0.5]).tobytes()], id="7")
    message.model_version = "3"
    message.outputs.add(name="Y")

    request, form = decoder.decode(message.SerializeToString())

    assert (request.model_name, request.version, request.id, request.requested) == ("m", 3, "7", ("Y",))
    assert [(each.name, each.datatype, each.shape) for each in request.inputs.values()] == [
        ("A", "INT8", (1, 2)),
        ("B", "FP64", (1,)),
    ]
    assert request.inputs["A"].array.tolist() == [[1, -1]]
    assert request.inputs["B"].array.tolist() == [0.5]
    assert form == ResponseForm()


@pytest.mark.parametrize("request_id", ["", "1", "22", "333", "4444", "é", "x" * 127, "x" * 128, "x" * 5000])
def test_a_message_is_read_the_same_whether_it_was_expected_or_not(decoder, plain, request_id):
    decoder.decode(plain("first"))

    request, _ = decoder.decode(plain(request_id, FLOATS + 1))

    assert request.id == request_id
    assert request.inputs["X"].array.tolist() == [2.5, 3.5]


@pytest.mark.parametrize("expected", [False, True])
@pytest.mark.parametrize("request_id", ["", "7"])
def test_a_short_message_that_came_in_several_parts_is_read_like_any_other(decoder, plain, request_id, expected):
    if expected:
        decoder.decode(plain("first"))

    request, _ = decoder.decode(memoryview(bytearray(plain(request_id))))

    assert request.id == request_id
    assert request.inputs["X"].array.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("expected", [False, True])
def test_tensors_are_aligned_views_on_the_message_wherever_that_can_be(decoder, plain, expected):
    if expected:
        decoder.decode(plain("id"))
    views = 0
    for size in range(8):
        message = plain("x" * size)

        array = decoder.decode(message)[0].inputs["X"].array

        assert array.flags.aligned
        views += np.shares_memory(array, np.frombuffer(message, np.uint8))
    assert views == 2  # of the eight places, one in four is aligned


def test_a_large_tensor_that_is_not_aligned_is_copied_into_the_memory_of_its_model(ask):
    memory = np.zeros(1 << 20, np.uint8)
    decoder = Decoder(lambda: None, lambda model, size: memoryview(memory)[:size] if model == "m" else None)
    x = np.arange(50_000, dtype=np.float32)
    copied = 0
    for model in ("m", "o"):
        for size in range(4):
            message = ask(("X", "FP32", [len(x)]), raw=[x.tobytes()], id="x" * size, model=model).SerializeToString()

            array = decoder.decode(message)[0].inputs["X"].array

            assert np.array_equal(array, x)
            assert array.flags.aligned
            copied += np.shares_memory(array, memory)
            del array
            memory[:] = 0
    assert copied == 3  # of the four places, one is aligned; the other model has no memory


@pytest.mark.parametrize("content", [[b"", b"a\x00b"], [b"x" * 300]])
def test_strings_are_unpacked(decode, ask, content):
    packed = b"".join(len(each).to_bytes(4, "little") + each for each in content)

    request, _ = decode(ask(("S", "BYTES", [len(content), 1]), raw=[packed]))

    assert request.inputs["S"].array.tolist() == [[each] for each in content]


def test_any_byte_but_0_is_true(decode, ask):
    array = decode(ask(("B", "BOOL", [3]), raw=[b"\x00\x01\x02"]))[0].inputs["B"].array

    assert array.dtype == np.bool_
    assert array.view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_halves_can_be_sent_as_bytes(decode, ask, datatype):
    array = decode(ask(("H", datatype, [2]), raw=[b"\x00\x3c\x00\x40"]))[0].inputs["H"].array

    assert array.view(np.uint16).tolist() == [0x3C00, 0x4000]


@pytest.mark.parametrize("datatype", ["FP32", "BYTES", "BOOL"])
def test_a_tensor_may_have_no_elements(decode, ask, datatype):
    request, _ = decode(ask(("E", datatype, [0, 4]), ("F", datatype, [2, 0]), raw=[b"", b""]))

    assert [each.array.shape for each in request.inputs.values()] == [(0, 4), (2, 0)]


def test_a_tensor_may_have_no_dimensions(decode, ask):
    assert decode(ask(("N", "INT16", []), raw=[b"\x05\x00"]))[0].inputs["N"].array == 5


def test_a_request_may_have_no_inputs(decode, ask):
    assert decode(ask())[0].inputs == {}


def test_a_request_may_be_empty(decoder):
    request, _ = decoder.decode(b"")

    assert (request.model_name, dict(request.inputs)) == ("", {})


def test_two_requests_to_one_model_need_not_be_alike(decoder, ask):
    one = ask(("X", "FP32", [2]), raw=[FLOATS.tobytes()]).SerializeToString()
    two = ask(("X", "FP32", [1]), raw=[FLOATS[:1].tobytes()]).SerializeToString()
    three = ask(("X", "FP32", [1]), raw=[FLOATS[:1].tobytes()], model_version="2").SerializeToString()

    read = [decoder.decode(message)[0] for message in (one, two, three, one, three)]

    assert [(request.version, request.inputs["X"].array.shape) for request in read] == [
        (0, (2,)),
        (0, (1,)),
        (2, (1,)),
        (0, (2,)),
        (2, (1,)),
    ]


def test_only_so_many_messages_are_remembered(decoder, ask):
    for number in range(600):
        decoder.decode(ask(model=f"m{number}").SerializeToString())

    assert (len(decoder._templates), len(decoder._expected)) == (512, 512)


def test_long_messages_are_not_remembered(decoder, ask):
    decoder.decode(ask(parameters={"p": {"string_param": "x" * 5000}}).SerializeToString())

    assert (len(decoder._templates), len(decoder._expected)) == (0, 0)


def test_the_fields_may_come_in_any_order(decoder, ask):
    front = ask(id="7").SerializeToString()
    raw = ask(model="", raw=[FLOATS.tobytes()]).SerializeToString()
    tensor = ask(("X", "FP32", [2]), model="").SerializeToString()

    for message in (raw + tensor + front, tensor + front + raw, front + raw + tensor):
        request, _ = decoder.decode(message)

        assert (request.model_name, request.id) == ("m", "7")
        assert request.inputs["X"].array.tolist() == [1.5, 2.5]


def test_of_two_ids_the_later_counts(decoder, ask, plain):
    message = plain("first") + ask(model="", id="second").SerializeToString()

    assert decoder.decode(message)[0].id == "second"


@pytest.mark.parametrize(
    ("version", "reason"),
    [("0", "version should be an integral value > 0"), ("x1", "'x1'"), ("-1", "'-1'"), ("9" * 20, "out of range")],
)
def test_a_version_must_be_a_number_from_1_up(decode, ask, version, reason):
    with pytest.raises(InvalidArgumentError, match=reason):
        decode(ask(model_version=version))


@pytest.mark.parametrize(
    ("inputs", "raw", "reason"),
    [
        ([("X", "FP32", [2])], [], r"unable to find data for input tensor 'X' for model 'm' in request\."),
        ([("X", "FP32", [2])], [b"1234"], "mismatch for input 'X' for model 'm'. Expected 8, got 4"),
        ([("X", "BOOL", [2])], [b"1"], "mismatch for input 'X' for model 'm'. Expected 2, got 1"),
        ([("X", "INT8", [1])], [b"1", b"2"], "expected 1 raw_input_contents for model 'm', got 2"),
        ([("X", "INT8", [1]), ("Y", "INT8", [1])], [b"1"], "expected 2 raw_input_contents for model 'm', got 1"),
        ([], [b"1"], "expected 0 raw_input_contents for model 'm', got 1"),
        ([("X", "INT8", [1]), ("X", "INT8", [1])], [b"1", b"1"], "input 'X' already exists in request"),
        ([("X", "FP33", [1])], [b"1"], "unknown datatype 'FP33' of input 'X' for model 'm'; the datatypes are"),
        ([("X", "INT8", [2, -1])], [b"1"], r"All input dimensions should be specified for input 'X' .*, got \[2,-1\]"),
        ([("X", "INT8", [2**62, 2**62, 0])], [b""], "total element count"),
        ([("X", "FP64", [2**61, 1])], [b""], "overflow for input 'X'"),
        ([("X", "INT8", [1] * 65)], [b"1"], "'X' has 65 dimensions"),
        ([("X", "BYTES", [1])], [b"\x01"], "'X' for model 'm', expecting 4 bytes"),
        ([("X", "BYTES", [1])], [b"\x02\x00\x00\x00a"], "length 2 but only 1 bytes"),
        ([("X", "BYTES", [2])], [b"\x00" * 4], "expected 2 string elements .* 'X'"),
        ([("X", "BYTES", [1])], [b"\x00" * 8], "string elements 2 .* 'X'"),
    ],
)
def test_inputs_that_are_invalid_are_refused(decode, ask, inputs, raw, reason):
    message = ask(*inputs, raw=raw)

    for _ in range(2):  # the second time its skeleton is known
        with pytest.raises(InvalidArgumentError, match=reason):
            decode(message)


def test_a_request_that_was_expected_is_checked_all_the_same(decoder, ask, plain):
    decoder.decode(plain("7"))

    with pytest.raises(InvalidArgumentError, match="Expected 8, got 4"):
        decoder.decode(ask(("X", "FP32", [2]), raw=[b"1234"], id="7").SerializeToString())
    with pytest.raises(InvalidArgumentError, match="unable to find data"):
        decoder.decode(ask(("X", "FP32", [2]), id="7").SerializeToString())
    with pytest.raises(InvalidArgumentError, match="got 2"):
        decoder.decode(ask(("X", "FP32", [2]), raw=[b"12345678", b""], id="7").SerializeToString())


def test_an_id_must_be_utf_8(decoder, plain):
    decoder.decode(plain("7"))

    with pytest.raises(InvalidArgumentError, match="UTF-8"):
        decoder.decode(plain("ab").replace(b"\x1a\x02ab", b"\x1a\x02a\xff"))


def test_the_character_for_what_is_no_utf_8_may_be_in_an_id(decoder, plain):
    decoder.decode(plain("7"))

    assert decoder.decode(plain("\ufffd"))[0].id == "\ufffd"


def test_outputs_can_be_classified(decode, ask):
    message = ask()
    message.outputs.add(name="Y").parameters["classification"].int64_param = 3
    message.outputs.add(name="Z").parameters["classification"].int64_param = 0

    request, form = decode(message)

    assert request.requested == ("Y", "Z")
    assert form == ResponseForm({"Y": OutputForm(classes=3)})


def test_an_output_can_be_named_once(decode, ask):
    message = ask()
    message.outputs.add(name="Y")
    message.outputs.add(name="Y")

    with pytest.raises(InvalidArgumentError, match="output 'Y' already exists in request"):
        decode(message)


@pytest.mark.parametrize(
    ("value", "reason"),
    [({"string_param": "3"}, "expected int64_param. It has string_param"), ({"int64_param": -1}, "value >= 0")],
)
def test_classes_are_a_number(decode, ask, value, reason):
    message = ask()
    message.outputs.add(name="Y", parameters={"classification": value})

    with pytest.raises(InvalidArgumentError, match=f"'classification'.* for requested output 'Y'.*{reason}"):
        decode(message)


def test_the_id_of_a_message_that_cannot_be_decoded_can_be_reported(ask):
    assert request_id_of(ask(id="7", model_version="x").SerializeToString()) == "7"
    assert request_id_of(b"\x1a\x05ab") == ""


def test_messages_that_differ_in_ids_and_contents_have_one_layout(decoder, plain):
    decoder.decode(plain("1"))
    inputs = [decoder.decode(plain(request_id, FLOATS + 1))[0].inputs for request_id in ("2", "3")]

    assert inputs[0].layout is inputs[1].layout
