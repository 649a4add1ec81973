"""Snippets of a trial: the request as a curl command, as Python with tritonclient, and as a grpcurl command. Pure."""

import base64
import json
import math
import shlex
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np

from naiad.types import Request
from naiad_tensors.datatypes import bf16_to_fp32
from naiad_tensors.tensors import Tensor

_FILES = ("npy", "file", "image")
_MOST_OF_COMMAND = 65536
"""A command line takes 128 KiB in one argument (execve(2), MAX_ARG_STRLEN)."""

_CONTENTS = {
    "BOOL": "bool_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
    "INT64": "int64_contents",
    "UINT64": "uint64_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
}
_SCALING = {
    "0-1": " / 255",
    "-1-1": " / 127.5 - 1",
    "imagenet": " / 255 - np.array([0.485, 0.456, 0.406], np.float32)) / np.array([0.229, 0.224, 0.225], np.float32)",
}


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the protocols are served, as `localhost:8000`; "" where one is not."""

    http: str
    grpc: str
    http_tls: bool = False
    grpc_tls: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """A request, with the form that it was read from."""

    request: Request
    document: Mapping[str, Any]
    decoupled: bool

    def kind(self, name: str) -> str:
        """What the form has for an input; see `read_tensor`."""
        return str(self.document["inputs"][name]["kind"])

    def file(self, name: str) -> str:
        """The name of an input's file."""
        return str(self.document["inputs"][name].get("file") or f"{name}.{self.kind(name)}")


def snippets(trial: Trial, endpoints: Endpoints) -> dict[str, str]:
    """The text of each snippet by its name; where there can be none, a comment that says why."""
    return {"curl": curl(trial, endpoints), "Python": python(trial, endpoints), "grpcurl": grpcurl(trial, endpoints)}


def curl(trial: Trial, endpoints: Endpoints) -> str:
    """The request over HTTP; a decoupled model streams, which `infer` cannot."""
    request = trial.request
    if not endpoints.http:
        return "# this server has no HTTP on a port"
    for name, tensor in request.inputs.items():
        if trial.kind(name) in _FILES:
            return f"# the input {name} comes from a file: use Python"
        if tensor.datatype in ("FP16", "BF16"):
            return f"# {tensor.datatype} has no form in JSON: use Python or grpcurl"
    if trial.decoupled:
        action, option = "generate_stream", " -N"
        body: dict[str, Any] = {name: _flat(each) for name, each in request.inputs.items()} | _all_parameters(request)
    else:
        action, option = "infer", ""
        tensors = [
            {"name": name, "datatype": each.datatype, "shape": list(each.shape), "data": _flat(each)}
            for name, each in request.inputs.items()
        ]
        body = {"inputs": tensors} | ({"parameters": every} if (every := _all_parameters(request)) else {})
    if request.id:
        body = {"id": request.id, **body}
    scheme = "https" if endpoints.http_tls else "http"
    model = quote(request.model_name, safe="")
    url = f"{scheme}://{endpoints.http}/v2/models/{model}/versions/{request.version}/{action}"
    text = json.dumps(body, ensure_ascii=False)
    if len(text) > _MOST_OF_COMMAND:
        return "# the values are too long for a command: use Python"
    return f"curl -s{option} {shlex.quote(url)} \\\n  -H 'Content-Type: application/json' \\\n  -d {shlex.quote(text)}"


def grpcurl(trial: Trial, endpoints: Endpoints) -> str:
    """The request over gRPC; values that JSON cannot carry, and those of files, as bytes in base64."""
    request = trial.request
    if not endpoints.grpc:
        return "# this server has no gRPC on a port"
    raw = any(each.datatype in ("FP16", "BF16") or trial.kind(name) in _FILES for name, each in request.inputs.items())
    if raw and sum(each.nbytes for each in request.inputs.values()) > _MOST_OF_COMMAND:
        return "# the bytes of the inputs are too long for a command: use Python"
    tensors = []
    for name, each in request.inputs.items():
        tensor: dict[str, Any] = {"name": name, "datatype": each.datatype, "shape": list(each.shape)}
        if not raw:
            tensor["contents"] = {_CONTENTS[each.datatype]: _proto_values(each)}
        tensors.append(tensor)
    body: dict[str, Any] = {"model_name": request.model_name, "model_version": str(request.version), "inputs": tensors}
    if raw:
        body["raw_input_contents"] = [_base64(_raw(each)) for each in request.inputs.values()]
    if request.id:
        body["id"] = request.id
    parameters = {key: _proto_parameter(key, value) for key, value in _all_parameters(request).items()}
    if parameters:
        body["parameters"] = parameters
    text = json.dumps(body, ensure_ascii=False)
    if len(text) > _MOST_OF_COMMAND:
        return "# the values are too long for a command: use Python"
    call = "ModelStreamInfer" if trial.decoupled else "ModelInfer"
    plain = "" if endpoints.grpc_tls else " -plaintext"
    return f"grpcurl{plain} -d {shlex.quote(text)} \\\n  {endpoints.grpc} inference.GRPCInferenceService/{call}"


def python(trial: Trial, endpoints: Endpoints) -> str:
    """The request with tritonclient: over HTTP, for a decoupled model over gRPC, which streams."""
    request = trial.request
    protocol = "grpc" if trial.decoupled or not endpoints.http else "http"
    address = endpoints.grpc if protocol == "grpc" else endpoints.http
    if not address:
        return "# this server has neither HTTP nor gRPC on a port"
    secure = endpoints.grpc_tls if protocol == "grpc" else endpoints.http_tls
    kinds = {trial.kind(name) for name in request.inputs}
    lines = ["import numpy as np", f"import tritonclient.{protocol} as {protocol}client"]
    lines += ["from PIL import Image"] if "image" in kinds else []
    security = ", ssl=True" if secure else ""
    lines += ["", f'client = {protocol}client.InferenceServerClient("{address}"{security})', "inputs = []"]
    for name, tensor in request.inputs.items():
        lines += ["", *_python_input(trial, name, tensor, protocol)]
    lines += ["", *_python_call(trial, protocol)]
    return "\n".join(lines) + "\n"


def _python_input(trial: Trial, name: str, tensor: Tensor, protocol: str) -> Iterator[str]:
    kind, shape = trial.kind(name), list(tensor.shape)
    dtype = {"BF16": "np.float32", "BYTES": "np.object_"}.get(tensor.datatype, f"np.{tensor.array.dtype.name}")
    dtype = "np.bool_" if tensor.datatype == "BOOL" else dtype
    if kind == "npy":
        text = ".astype(np.object_)" if tensor.datatype == "BYTES" else f".astype({dtype})"
        yield f"values = np.load({trial.file(name)!r}){text}.reshape({shape})"
    elif kind == "file":
        yield f"values = np.array([open({trial.file(name)!r}, 'rb').read()], np.object_).reshape({shape})"
    elif kind == "image":
        yield from _python_image(trial.document["inputs"][name], trial.file(name), tensor, dtype)
    else:
        yield f"values = {_python_array(tensor, dtype)}"
    yield f"tensor = {protocol}client.InferInput({name!r}, {shape}, {tensor.datatype!r})"
    yield "tensor.set_data_from_numpy(values)"
    yield "inputs.append(tensor)"


def _python_array(tensor: Tensor, dtype: str) -> str:
    values = _flat(tensor)
    if len(values) > 16 and len(set(values)) == 1 and values[0] == values[0]:
        return f"np.full({list(tensor.shape)}, {values[0]!r}, {dtype})"
    text = ", ".join(_python_value(each) for each in values)
    reshape = "" if len(tensor.shape) == 1 else f".reshape({list(tensor.shape)})"
    return f"np.array([{text}], {dtype}){reshape}"


def _python_value(value: Any) -> str:
    return f"float('{value}')" if isinstance(value, float) and not math.isfinite(value) else repr(value)


def _python_image(entry: Mapping[str, Any], file: str, tensor: Tensor, dtype: str) -> Iterator[str]:
    channels_last = tensor.shape[-1] in (1, 3)
    grey = (tensor.shape[-1] if channels_last else tensor.shape[-3]) == 1
    mode, scale = "L" if grey else "RGB", str(entry.get("scale"))
    size = (entry["width"], entry["height"])
    yield f"image = Image.open({file!r}).convert('{mode}').resize({size})"
    yield f"values = np.asarray(image, np.float32).reshape({entry['height']}, {entry['width']}, {1 if grey else 3})"
    if scale == "imagenet" and grey:
        yield "values = (values / 255 - 0.449) / 0.226"
    elif scale in _SCALING:
        yield f"values = {'(' if scale == 'imagenet' else ''}values{_SCALING[scale]}"
    order = "" if channels_last else ".transpose(2, 0, 1)"
    yield f"values = values{order}.reshape({list(tensor.shape)}).astype({dtype})"


def _python_call(trial: Trial, protocol: str) -> Iterator[str]:
    request = trial.request
    options = [f"model_version='{request.version}'"]
    if request.id:
        options.append(f"request_id={request.id!r}")
    if request.correlation_id:
        options.append(f"sequence_id={request.correlation_id!r}")
        options.append(f"sequence_start={request.sequence_start}, sequence_end={request.sequence_end}")
    options += [f"priority={request.priority}"] if request.priority else []
    options += [f"timeout={request.timeout_microseconds}"] if request.timeout_microseconds else []
    options += [f"parameters={dict(request.parameters)!r}"] if request.parameters else []
    arguments = f"({request.model_name!r}, inputs, {', '.join(options)})"
    if not trial.decoupled:
        yield f"result = client.infer{arguments}"
        yield (
            "for output in result.get_response()['outputs']:"
            if protocol == "http"
            else ("for output in result.get_response().outputs:")
        )
        name = "output['name']" if protocol == "http" else "output.name"
        yield f"    print({name}, result.as_numpy({name}))"
        return
    yield "import queue"
    yield ""
    yield "responses = queue.Queue()"
    yield "client.start_stream(callback=lambda result, error: responses.put(error or result.get_response()))"
    yield f"client.async_stream_infer{arguments[:-1]}, enable_empty_final_response=True)"
    yield "while True:"
    yield "    response = responses.get()"
    yield "    print(response)"
    yield "    if isinstance(response, Exception) or response.parameters['triton_final_response'].bool_param:"
    yield "        break"
    yield "client.stop_stream()"


def _all_parameters(request: Request) -> dict[str, Any]:
    """The parameters as the protocol names them."""
    known: dict[str, Any] = {}
    if request.correlation_id:
        known["sequence_id"] = request.correlation_id
        known |= {"sequence_start": request.sequence_start, "sequence_end": request.sequence_end}
    known |= {"priority": request.priority} if request.priority else {}
    known |= {"timeout": request.timeout_microseconds} if request.timeout_microseconds else {}
    return {**request.parameters, **known}


def _flat(tensor: Tensor) -> list[Any]:
    """The elements in row-major order as Python has them; a float32 in the fewest digits that say it."""
    array = bf16_to_fp32(tensor.array) if tensor.datatype == "BF16" else tensor.array
    if tensor.datatype == "BYTES":
        return [each.decode(errors="replace") for each in array.ravel().tolist()]
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        return [float(str(each)) for each in array.ravel()]
    elements: list[Any] = array.ravel().tolist()
    return elements


def _proto_values(tensor: Tensor) -> list[Any]:
    if tensor.datatype == "BYTES":
        return [_base64(each) for each in tensor.array.ravel().tolist()]
    return [_proto_number(each) for each in _flat(tensor)]


def _proto_number(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _proto_parameter(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"bool_param": value}
    if isinstance(value, int):
        return {"uint64_param" if key == "priority" else "int64_param": str(value)}
    return {"double_param": value} if isinstance(value, float) else {"string_param": value}


def _raw(tensor: Tensor) -> bytes:
    if tensor.datatype == "BYTES":
        return b"".join(struct.pack("<I", len(each)) + each for each in tensor.array.ravel().tolist())
    return np.ascontiguousarray(tensor.array).tobytes()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
