"""The key of a request: different for all that a model can tell apart, and the same for what it cannot."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_cache.keys import LARGE, KeyMaker, size
from naiad_tensors.tensors import DeferredPayload, Tensor

KEYS = KeyMaker("m", 1, b"load")


def asking(*tensors: Tensor, **fields: Any) -> Request:
    return Request("m", {tensor.name: tensor for tensor in tensors}, **fields)


def key(*tensors: Tensor, **fields: Any) -> bytes:
    return KEYS.key(asking(*tensors, **fields))


def floats(name: str = "a", *values: float, shape: tuple[int, ...] | None = None) -> Tensor:
    array = np.array(values, dtype=np.float32)
    return Tensor.of(name, array if shape is None else array.reshape(shape))


def texts(name: str, *elements: bytes) -> Tensor:
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return Tensor.of(name, array)


def test_the_same_request_has_the_same_key_in_whatever_memory_and_order_its_inputs_are() -> None:
    one = key(floats("a", 1, 2, 3, 4, shape=(2, 2)), texts("b", b"x", b""), id="1", priority=3, deadline=5.0)
    columns = np.asfortranarray(np.array([[1, 2], [3, 4]], dtype=np.float32))

    other = key(texts("b", b"x", b""), Tensor("a", "FP32", (2, 2), columns), id="2", timeout_microseconds=9)

    assert one == other
    assert len(one) == 32


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (asking(floats("a", 1)), asking(floats("a", 2))),
        (asking(floats("a", 0.0)), asking(floats("a", -0.0))),
        (asking(floats("a", 1)), asking(floats("b", 1))),
        (asking(floats("a", 1, 2, shape=(1, 2))), asking(floats("a", 1, 2, shape=(2, 1)))),
        (asking(floats("a", 1, 2)), asking(floats("a", 1, 2, shape=(1, 2)))),
        (asking(floats("a", shape=(0,))), asking(floats("a", shape=(0, 3)))),
        (asking(Tensor.of("a", np.zeros(1, np.int32))), asking(Tensor.of("a", np.zeros(1, np.uint32)))),
        (asking(Tensor.of("a", np.zeros(1, np.float16))), asking(Tensor("a", "BF16", (1,), np.zeros(1, np.uint16)))),
        (asking(floats("a", 1), floats("b", 2)), asking(floats("a", 2), floats("b", 1))),
        (asking(floats("a", 1), floats("b")), asking(floats("a"), floats("b", 1))),
        (asking(floats("a", 1)), asking(floats("a", 1), floats("b"))),
        (asking(texts("a", b"xy", b"")), asking(texts("a", b"x", b"y"))),
        (asking(texts("a", b"", b"")), asking(texts("a", b""))),
        (asking(texts("a", b"x"), texts("b", b"y")), asking(texts("a", b"xy"), texts("b", b""))),
        (asking(floats("a", 1)), asking(floats("a", 1), requested=("o",))),
        (asking(floats("a", 1), requested=("o",)), asking(floats("a", 1), requested=("p",))),
        (asking(floats("a", 1), requested=("o", "p")), asking(floats("a", 1), requested=("o, p",))),
        (asking(floats("a", 1)), asking(floats("a", 1), parameters={"p": 1})),
        (asking(floats("a", 1), parameters={"p": 1}), asking(floats("a", 1), parameters={"p": 1.0})),
        (asking(floats("a", 1), parameters={"p": 1}), asking(floats("a", 1), parameters={"p": True})),
        (asking(floats("a", 1), parameters={"p": 1}), asking(floats("a", 1), parameters={"p": "1"})),
    ],
)
def test_requests_that_a_model_can_distinguish_have_different_keys(one: Request, other: Request) -> None:
    assert KEYS.key(one) == KEYS.key(one)
    assert KEYS.key(one) != KEYS.key(other)


@pytest.mark.parametrize(
    "other", [KeyMaker("n", 1, b"load"), KeyMaker("m", 2, b"load"), KeyMaker("m", 1, b"again"), KeyMaker("m1", 1, b"")]
)
def test_every_model_version_and_load_has_keys_of_its_own(other: KeyMaker) -> None:
    request = asking(floats("a", 1))

    assert other.key(request) != KEYS.key(request)


ARRAYS = st.one_of(
    st.tuples(
        st.sampled_from(["FP32", "INT32", "UINT8", "INT8", "BOOL"]),
        st.sampled_from([(0,), (1,), (2,), (1, 2), (2, 1), (4,), (2, 2), ()]),
        st.binary(min_size=16, max_size=16).map(lambda content: bytes(byte & 1 for byte in content)),
    ),
    st.tuples(st.just("BYTES"), st.lists(st.binary(max_size=3), max_size=4), st.just(b"")),
)
REQUESTS = st.tuples(
    st.dictionaries(st.sampled_from(["a", "b", "ab", "a', 'b"]), ARRAYS, min_size=1, max_size=3),
    st.lists(st.sampled_from(["o", "p", "op"]), unique=True, max_size=2),
    st.dictionaries(st.sampled_from(["p", "q"]), st.sampled_from([0, 1, True, 1.0, "1", "x"]), max_size=2),
)
Drawn = tuple[dict[str, Any], list[str], dict[str, Any]]


def request_of(drawn: Drawn) -> Request:
    inputs, requested, parameters = drawn
    return asking(*map(tensor_of, inputs, inputs.values()), requested=tuple(requested), parameters=parameters)


def tensor_of(name: str, drawn: Any) -> Tensor:
    wire, shape, content = drawn
    if wire == "BYTES":
        return texts(name, *shape)
    dtype = {"FP32": "f4", "INT32": "i4", "UINT8": "u1", "INT8": "i1", "BOOL": "?"}[wire]
    count = int(np.prod(shape))
    return Tensor(name, wire, shape, np.frombuffer(content, dtype)[:count].reshape(shape))


def fields_of(request: Request) -> object:
    """All that the key must cover, as something that can be compared."""
    inputs = {
        name: (tensor.datatype, tensor.array.shape, content_of(tensor.array)) for name, tensor in request.inputs.items()
    }
    return inputs, request.requested, {name: (type(value), value) for name, value in request.parameters.items()}


def content_of(array: np.ndarray) -> object:
    return array.tolist() if array.dtype.hasobject else array.tobytes()


@given(REQUESTS, REQUESTS)
@settings(max_examples=400)
def test_keys_are_equal_for_equal_requests_and_no_others(one: Drawn, other: Drawn) -> None:
    first, second = request_of(one), request_of(other)

    assert (KEYS.key(first) == KEYS.key(second)) == (fields_of(first) == fields_of(second))


class OnADevice:
    """Something that is not a numpy array."""

    def __dlpack__(self, **options: Any) -> Any:
        raise AssertionError("the payload must not be read")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


@pytest.mark.parametrize(
    "request_",
    [
        asking(Tensor("a", "FP32", (1,), OnADevice())),
        asking(floats("a", 1), correlation_id=1),
        asking(floats("a", 1), correlation_id="s"),
        asking(floats("a", 1), sequence_start=True),
        asking(Tensor("a", "BYTES", (1,), np.array(["text"], dtype=object))),
    ],
)
def test_some_requests_go_past_the_cache(request_: Request) -> None:
    assert size(request_) is None


class Deferred(DeferredPayload):
    """Four floats in memory of a client, which may take it away, or of a device."""

    def __init__(self, values: Sequence[float], on_device: bool = False) -> None:
        self.values: Sequence[float] | None = values
        self.on_device = on_device

    def fetch(self) -> np.ndarray:
        if self.values is None:
            raise InvalidArgumentError("the segment has shrunk")
        return np.array(self.values, np.float32)

    @property
    def nbytes(self) -> int:
        return -1 if self.on_device else 16


def test_what_lies_in_shared_memory_is_fetched_for_the_key() -> None:
    request = asking(Tensor("a", "FP32", (4,), Deferred(range(4))))

    assert size(request) == 16
    assert KEYS.key(request) == key(floats("a", 0, 1, 2, 3))


def test_memory_that_a_client_has_taken_away_has_no_key() -> None:
    content = Deferred(range(4))
    request = asking(Tensor("a", "FP32", (4,), content))

    content.values = None

    assert KEYS.key(request) == b""


def test_what_lies_on_a_device_goes_past_the_cache() -> None:
    assert size(asking(Tensor("a", "FP32", (4,), Deferred(range(4), on_device=True)))) is None


class DeferredStrings(DeferredPayload):
    """So many empty strings in memory of a client, four bytes each."""

    def __init__(self, count: int) -> None:
        self.count = count

    def fetch(self) -> np.ndarray:
        raise AssertionError("they are not fetched for their size")

    @property
    def nbytes(self) -> int:
        return 4 * self.count


@pytest.mark.parametrize(
    "strings",
    [
        texts("a", bytes(LARGE)),
        texts("a", *[b""] * 5000),
        Tensor("a", "BYTES", (5000,), DeferredStrings(5000)),
    ],
    ids=["a long one", "many", "many in shared memory"],
)
def test_a_thread_makes_the_key_of_strings_that_are_many_or_long(strings: Tensor) -> None:
    request = asking(strings)

    byte_size = size(request)

    assert byte_size is not None
    assert byte_size >= LARGE


def test_many_strings_are_looked_at_only_for_their_key() -> None:
    array = np.full(5000, "text", dtype=object)
    request = asking(Tensor("a", "BYTES", (5000,), array))

    assert size(request) is not None
    assert KEYS.key(request) == b""


@pytest.mark.parametrize("index", [0, 16383, 16384, 39999])
def test_of_many_strings_each_and_its_length_is_part_of_the_key(index: int) -> None:
    elements = [b"x"] * 40_000
    before, elements[index] = key(texts("a", *elements)), b"y"
    after, elements[index] = key(texts("a", *elements)), b""
    without = key(texts("a", *elements))
    elements[index - 1] = b"xx"

    assert len({before, after, without, key(texts("a", *elements))}) == 4


def test_the_size_of_a_request_is_that_of_its_inputs() -> None:
    assert size(asking(floats("a", 1, 2), floats("b"))) == 8
    assert size(asking()) == 0
