"""Short ways to write inference requests over HTTP."""

import json
import struct
from collections.abc import Mapping
from typing import Any

from ..answers import Case
from ..http_asking import bytes_case, http_case, request

HEADER = "Inference-Header-Content-Length"
ADDS = "/v2/models/add_sub/infer"
VECTOR = "/v2/models/vector/infer"


def tensor(name: str, datatype: str, shape: list[Any], data: Any = None, **parameters: Any) -> dict[str, Any]:
    """An input as JSON; `data` None leaves it out."""
    report: dict[str, Any] = {"name": name, "datatype": datatype, "shape": shape}
    if parameters:
        report["parameters"] = parameters
    if data is not None:
        report["data"] = data
    return report


A = tensor("INPUT0", "FP32", [1, 4], [1, 2, 3, 4])
B = tensor("INPUT1", "FP32", [1, 4], [0.5, 0.25, -1, 1e-3])


def infer(key: str, model: str, inputs: Any, outputs: Any = None, **more: Any) -> Case:
    """A JSON inference request."""
    return http_case(key, "POST", f"/v2/models/{model}/infer", document(inputs, outputs, **more))


def adds(key: str, **more: Any) -> Case:
    """A JSON request to the model `add_sub`; `more` goes into the request."""
    return http_case(key, "POST", ADDS, {"inputs": [A, B]} | more)


def document(inputs: Any, outputs: Any = None, **more: Any) -> dict[str, Any]:
    """The JSON of an inference request."""
    return {"inputs": inputs} | ({} if outputs is None else {"outputs": outputs}) | more


def binary(
    key: str,
    model: str,
    head: Mapping[str, Any] | bytes,
    content: bytes = b"",
    length: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Case:
    """A request with tensors behind its JSON; `length` replaces the right length of the JSON."""
    return bytes_case(key, binary_bytes(model, head, content, length, headers))


def binary_bytes(
    model: str,
    head: Mapping[str, Any] | bytes,
    content: bytes = b"",
    length: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """The bytes of such a request."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    fields = {HEADER: str(len(text)) if length is None else length} | dict(headers or {})
    return request("POST", f"/v2/models/{model}/infer", text + content, fields)


def floats(*values: float) -> bytes:
    """FP32, as the wire has it."""
    return struct.pack(f"<{len(values)}f", *values)


def strings(*values: bytes) -> bytes:
    """BYTES, as the wire has it."""
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def requested(*names: str, **parameters: Any) -> list[dict[str, Any]]:
    """Outputs to ask for."""
    return [{"name": name} | ({"parameters": parameters} if parameters else {}) for name in names]
