"""Decoder of raw requests: the whole body is the one input of the model; its size gives the shape."""

from math import prod

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_http.codec.forms import AS_BINARY, ResponseForm
from naiad_http.codec.request_head import RequestHead
from naiad_kit.buffers import Buffer, bool_array, object_array
from naiad_tensors.datatypes import tensor_type, wire_name
from naiad_tensors.tensors import Tensor


def raw_request(request_head: RequestHead, config: ModelConfig, body: Buffer) -> tuple[Request, ResponseForm]:
    """The request with that body, a batch of one if the model batches; it requests all outputs as binary data.

    Raises InvalidArgumentError if the model's inputs do not allow it or the bytes do not fit the shape.
    """
    if len(config.input) != 1:
        raise InvalidArgumentError(
            f"Raw request must only have 1 input to be deduced but got {len(config.input)} inputs in '{config.name}' "
            "model configuration; send a JSON header that names the inputs"
        )
    declared = config.input[0]
    kind = tensor_type(wire_name(declared.data_type))
    batch = (1,) if config.max_batch_size > 0 else ()
    dims = tuple(declared.dims)
    if kind.wire == "BYTES":
        if dims != (1,):
            raise InvalidArgumentError(
                f"For BYTE datatype raw input '{declared.name}', the model must have input shape [1], got {list(dims)}"
            )
        array = object_array([bytes(body)]).reshape((*batch, 1))
    else:
        shape = (*batch, *_deduced(dims, len(body), kind.itemsize, declared.name, config.name))
        array = bool_array(shape, body) if kind.wire == "BOOL" else np.ndarray(shape, kind.dtype, body)
    tensor = Tensor(declared.name, kind.wire, array.shape, array)
    inputs = {declared.name: tensor}
    request = Request(request_head.model_name, inputs, request_head.version, parameters=dict(request_head.forwarded))
    return request, ResponseForm(AS_BINARY)


def takes_long(config: ModelConfig) -> bool:
    """Whether the bytes of a large raw request to that model are copied or looked at one by one."""
    return len(config.input) == 1 and wire_name(config.input[0].data_type) in ("BYTES", "BOOL")


def _deduced(dims: tuple[int, ...], size: int, itemsize: int, name: str, model: str) -> tuple[int, ...]:
    """`dims` with the variable dimension, if any, computed from the number of bytes."""
    if dims.count(-1) > 1:
        raise InvalidArgumentError(
            f"The shape of the raw input '{name}' can not be deduced because there are more than one variable-sized "
            f"dimension: {list(dims)}; send a JSON header with the shape"
        )
    fixed = prod(dim for dim in dims if dim != -1) * itemsize
    if -1 not in dims:
        fits, variable = size == fixed, 0
    else:
        variable, remainder = divmod(size, fixed) if fixed else (0, size)
        fits = remainder == 0
    if not fits:
        raise InvalidArgumentError(
            f"input byte size mismatch for input '{name}' for model '{model}'. Expected "
            f"{'a multiple of ' if -1 in dims else ''}{fixed}, got {size}"
        )
    return tuple(variable if dim == -1 else dim for dim in dims)
