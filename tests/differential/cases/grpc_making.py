"""Short ways to write inference requests over gRPC."""

from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.message import Message
from tritonclient.grpc import service_pb2 as pb

from ..answers import Case
from ..grpc_asking import grpc_case
from .http_making import floats

_FIELDS = {"bool": "bool_param", "int": "int64_param", "str": "string_param", "float": "double_param"}


def parameter(value: Any, field: str = "") -> Message:
    """A parameter with that value, in the field of its type, or in the named one."""
    return pb.InferParameter(**{field or _FIELDS[type(value).__name__]: value})


def tensor(
    name: str, datatype: str, shape: Sequence[int], parameters: Mapping[str, Any] | None = None, **contents: Any
) -> Message:
    """An input; `contents` are by field, as `fp32_contents=[1]`."""
    message = pb.ModelInferRequest.InferInputTensor(name=name, datatype=datatype, shape=shape)
    if contents:
        message.contents.CopyFrom(pb.InferTensorContents(**contents))
    for key, value in (parameters or {}).items():
        message.parameters[key].CopyFrom(value if isinstance(value, Message) else parameter(value))
    return message


def requested(name: str, **parameters: Any) -> Message:
    """An output to ask for."""
    message = pb.ModelInferRequest.InferRequestedOutputTensor(name=name)
    for key, value in parameters.items():
        message.parameters[key].CopyFrom(value if isinstance(value, Message) else parameter(value))
    return message


def infer_request(
    model: str,
    inputs: Sequence[Message],
    raw: Sequence[bytes] = (),
    outputs: Sequence[Message] = (),
    parameters: Mapping[str, Any] | None = None,
    **more: Any,
) -> Message:
    """An inference request; `more` goes into its fields."""
    message = pb.ModelInferRequest(model_name=model, inputs=inputs, raw_input_contents=raw, outputs=outputs, **more)
    for key, value in (parameters or {}).items():
        message.parameters[key].CopyFrom(value if isinstance(value, Message) else parameter(value))
    return message


def infer(key: str, model: str, inputs: Sequence[Message], raw: Sequence[bytes] = (), **more: Any) -> Case:
    """An inference request; `more` is for `infer_request`."""
    return grpc_case(f"grpc_{key}", "ModelInfer", infer_request(model, inputs, raw, **more))


A = tensor("INPUT0", "FP32", [1, 4])
B = tensor("INPUT1", "FP32", [1, 4])
RAW = (floats(1, 2, 3, 4), floats(5, 6, 7, 8))


def adds(key: str, **more: Any) -> Case:
    """A sound request to the model `add_sub`; `more` is for `infer_request`."""
    return infer(key, "add_sub", [A, B], RAW, **more)
