"""Every datatype of the protocol, through models written in each of the three ways, in all forms and sizes."""

from collections.abc import Mapping

import ml_dtypes
import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from naiad.datatypes import TENSOR_TYPES

from .asking import tensor, wanted
from .models import DATATYPES
from .running import Running

MIRRORS = {
    "custom_mirror": DATATYPES,
    "triton_mirror": DATATYPES,
    "onnx_mirror": tuple(kind for kind in DATATYPES if kind != "BF16"),
    "onnx_bf16": ("BF16",),
}
ONLY_BINARY = ("FP16", "BF16")
each_mirror = pytest.mark.parametrize(("model", "kinds"), MIRRORS.items(), ids=MIRRORS.keys())

EDGES = {
    "BOOL": [True, False, False, True],
    "FP16": [0.5, -65504.0, np.inf, -0.0],
    "FP32": [0.1, -3.4028235e38, 1.4e-45, -0.0],
    "FP64": [0.1, -1.7976931348623157e308, 5e-324, -0.0],
    "BF16": [1.0, -2.5, 3.0e38, 2**-20],
    "BYTES": ["", "ü ☃ \U0001f40b", 'q"\\\n\t', "a\0b\0"],
}


def edges(kind: str) -> np.ndarray:
    """Four elements that are hard to carry, as two rows and two columns."""
    dtype = np.dtype(ml_dtypes.bfloat16) if kind == "BF16" else TENSOR_TYPES[kind].dtype
    if kind == "BYTES":
        flat = np.array([each.encode() for each in EDGES[kind]], dtype=object)
    elif kind in EDGES:
        flat = np.array(EDGES[kind], dtype)
    else:
        flat = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1], dtype)
    return flat.reshape(2, 2)


def mirrored(
    server: Running, model: str, arrays: Mapping[str, np.ndarray], in_json: tuple[str, ...] = ()
) -> dict[str, np.ndarray]:
    """What comes back for one request with all these arrays, by datatype; those `in_json` travel so both ways."""
    inputs = [tensor(f"IN_{kind}", array, kind, kind not in in_json) for kind, array in arrays.items()]
    outputs = [wanted(f"OUT_{kind}", binary_data=kind not in in_json)[0] for kind in arrays]
    with server.client() as client:
        result = client.infer(model, inputs, outputs=outputs)
    return {kind: result.as_numpy(f"OUT_{kind}") for kind in arrays}


def as_bytes(array: np.ndarray) -> np.ndarray:
    """Strings that came as JSON, as the bytes that were sent."""
    if array.dtype != object:
        return array
    flat = [each.encode() if isinstance(each, str) else each for each in array.ravel()]
    return np.array(flat, dtype=object).reshape(array.shape)


def assert_same(got: Mapping[str, np.ndarray], sent: Mapping[str, np.ndarray]) -> None:
    for kind, array in sent.items():
        returned = as_bytes(got[kind])
        assert (returned.shape, returned.dtype) == (array.shape, array.dtype), kind
        if array.dtype == object:
            assert returned.tolist() == array.tolist()
        else:
            assert returned.tobytes() == array.tobytes(), f"{kind}: {array} came back as {returned}"


@each_mirror
def test_every_datatype_comes_back_as_bytes(server: Running, model: str, kinds: tuple[str, ...]) -> None:
    sent = {kind: edges(kind) for kind in kinds}

    assert_same(mirrored(server, model, sent), sent)


@each_mirror
def test_every_datatype_that_json_can_carry_comes_back_as_json(
    server: Running, model: str, kinds: tuple[str, ...]
) -> None:
    sent = {kind: edges(kind) for kind in kinds}

    assert_same(mirrored(server, model, sent, tuple(kind for kind in kinds if kind not in ONLY_BINARY)), sent)


@each_mirror
@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("binary", [True, False])
def test_tensors_without_elements_come_back(
    server: Running, model: str, kinds: tuple[str, ...], shape: tuple[int, int], binary: bool
) -> None:
    sent = {kind: np.zeros(shape, edges(kind).dtype) for kind in kinds}

    got = mirrored(server, model, sent, () if binary else tuple(kind for kind in kinds if kind not in ONLY_BINARY))

    assert {kind: array.shape for kind, array in got.items()} == dict.fromkeys(kinds, shape)


@each_mirror
def test_large_tensors_of_every_datatype_come_back(server: Running, model: str, kinds: tuple[str, ...]) -> None:
    sent = {kind: np.tile(edges(kind), (150, 100)) for kind in kinds}

    assert_same(mirrored(server, model, sent), sent)


@pytest.mark.parametrize("model", ["custom_mirror", "triton_mirror"])
def test_bytes_that_are_no_text_come_back(server: Running, model: str) -> None:
    sent = {kind: edges(kind) for kind in DATATYPES}
    sent["BYTES"] = np.array([[b"\0", b"\xff\xfe"], [bytes(range(256)), b""]], dtype=object)

    assert_same(mirrored(server, model, sent), sent)


def test_numbers_that_are_not_finite_come_back_as_json(server: Running) -> None:
    body = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[4],"data":[NaN,Infinity,-Infinity,1e-3]}]}'

    answer = server.ask("POST", "/v2/models/echo/infer", body)

    assert (answer.status, b'"data":[NaN,Infinity,-Infinity,0.001]' in answer.body) == (200, True)


@pytest.mark.parametrize("kind", ONLY_BINARY)
def test_half_floats_cannot_come_as_json(server: Running, kind: str) -> None:
    sent = {each: edges(each) for each in DATATYPES}
    inputs = [tensor(f"IN_{each}", array, each) for each, array in sent.items()]

    with server.client() as client, pytest.raises(InferenceServerException) as caught:
        client.infer("custom_mirror", inputs, outputs=wanted(f"OUT_{kind}", binary_data=False))

    assert (caught.value.status(), f"sending {kind} data via JSON is not supported" in str(caught.value)) == (
        "400",
        True,
    )


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("INT8", [128]),
        ("UINT8", [-1]),
        ("UINT64", [2**64]),
        ("INT64", [0.5]),
        ("BOOL", [1]),
        ("FP32", ["1"]),
        ("BYTES", [1]),
        ("FP16", [1]),
        ("BF16", [1]),
        ("INT7", [1]),
    ],
)
def test_json_that_does_not_fit_the_datatype_is_refused(server: Running, kind: str, data: list) -> None:
    given = {"name": f"IN_{kind}", "datatype": kind, "shape": [1, 1], "data": data}

    answer = server.ask("POST", "/v2/models/custom_mirror/infer", {"inputs": [given]})

    assert answer.status == 400
    assert kind in answer.error
