"""Conversion between a batch and a user's function: arguments from inputs, outputs from the return value."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from naiad.backend import Batch
from naiad.errors import ModelFailedError
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_custom.hints import datatype_hint, list_hint, shape_hint
from naiad_custom.ownership import are_fresh, settle
from naiad_custom.servers import AsyncServer, Server
from naiad_custom.signature import Signature
from naiad_kit.calls import ModelCalls
from naiad_kit.own_process import in_own_process
from naiad_tensors.datatypes import bf16_to_fp32, fp32_to_bf16, tensor_type


class Conversion:
    """Between a batch and the arguments and result of a function.

    Arrays go in read-only, because a batch of one is the received request itself; BF16 is float32 on both sides.
    `models` are those that the function may call. With a `config` the arrays that are returned are held against the
    annotations, and an error begins with the `location` of the function.
    """

    def __init__(
        self, signature: Signature, models: ModelCalls, config: ModelConfig | None = None, location: str = ""
    ) -> None:
        self._function = signature.function
        self._form = signature.form
        self._required = [each.name for each in signature.arguments if not each.optional]
        self._optional = [each.name for each in signature.arguments if each.optional]
        self._requests = [name for name, kind in signature.specials.items() if kind is Request]
        self._batches = [name for name, kind in signature.specials.items() if kind is Batch]
        self._bf16_inputs = frozenset(each.name for each in signature.arguments if each.spec.datatype == "BF16")
        self._server = signature.server
        self._make_server = AsyncServer if signature.is_async else Server
        self._models = models
        self._names = [each.name for each in signature.results]
        self._location = location
        self._batching = config is not None and config.max_batch_size > 0
        self._declared = [] if config is None else list(_declared(signature, config))
        self._bf16_outputs = frozenset(each.name for each in signature.results if each.spec.datatype == "BF16")

    def arguments(self, batch: Batch) -> dict[str, Any]:
        """Keyword arguments for the function; an optional input that the requests left out is left to its default."""
        arguments: dict[str, Any] = {name: self._array(batch, name) for name in self._required}
        for name in self._optional:
            if name in batch.input_names:
                arguments[name] = self._array(batch, name)
        for name in self._requests:
            arguments[name] = batch.requests[0]
        for name in self._batches:
            arguments[name] = batch
        if self._server:
            arguments[self._server] = self._make_server(self._models.within(batch.requests))
        return arguments

    def outputs(self, result: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """One array per output.

        Raises ModelFailedError when the result has another form than the annotation says, TypeError or ValueError for
        an array of another datatype or number of dimensions.
        """
        outputs = self._taken(result)
        del result  # a reference less, so that a fresh array is known to be fresh
        for name, dtype, rank, dims in self._declared:
            array = outputs[name]
            if type(array) is not np.ndarray and isinstance(array, (list, str, bytes, int, float)):
                array = outputs[name] = self._array_of(name, array, dtype)
            if type(array) is not np.ndarray:
                if isinstance(array, tuple) and any(isinstance(each, np.ndarray) for each in array):
                    raise TypeError(self._start(name) + f"it is {_shown(array)} and must be one array; return that")
            elif array.ndim != rank or (array.dtype is not dtype and array.dtype != dtype):
                raise self._mismatch(name, array, dtype, dims)
        array = None
        for name in self._bf16_outputs:
            outputs[name] = fp32_to_bf16(np.asarray(outputs[name], dtype=np.float32))
        if not in_own_process() and not are_fresh(outputs):
            settle(outputs, arguments.values())
        return outputs

    def _array_of(self, name: str, value: Any, dtype: np.dtype[Any]) -> np.ndarray:
        """The array of a list or a single value. Raises TypeError when it would have another dtype."""
        try:
            array = np.asarray(value)
        except ValueError:  # rows of several lengths
            array = None
        if array is None or array.dtype != dtype:
            raise TypeError(self._start(name) + list_hint(_shown(value), dtype))
        return array

    def _mismatch(self, name: str, array: np.ndarray, dtype: np.dtype[Any], dims: Sequence[int]) -> Exception:
        if array.dtype != dtype:
            return TypeError(self._start(name) + datatype_hint(array, dtype))
        return ValueError(self._start(name) + shape_hint(array.shape, dims, self._batching))

    def _start(self, name: str) -> str:
        return f"{self._location}'{self._function}' returned a wrong array for output '{name}': "

    def _array(self, batch: Batch, name: str) -> np.ndarray:
        array = batch.input(name)
        if name in self._bf16_inputs:
            array = bf16_to_fp32(array)
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        return array

    def _taken(self, result: Any) -> dict[str, Any]:
        if self._form == "one":
            results = {self._names[0]: result}
        elif self._form == "tuple" and isinstance(result, tuple) and len(result) == len(self._names):
            results = dict(zip(self._names, result, strict=True))
        elif self._form == "mapping" and isinstance(result, Mapping):
            results = dict(result)
        elif self._form == "attributes":
            results = {name: getattr(result, name, None) for name in self._names}
        else:
            results = {}
        wrong = [name for name in self._names if results.get(name) is None or isinstance(results[name], Mapping)]
        if wrong:
            raise ModelFailedError(
                f"{self._location}'{self._function}' returned {_shown(result)}, which has no array for "
                f"output '{wrong[0]}'; return {self._expected_return()}"
            )
        return results

    def _expected_return(self) -> str:
        names = ", ".join(self._names)
        form = {"tuple": "a tuple of", "mapping": "a dict with", "attributes": "an object with"}.get(self._form)
        return f"{form} {names}" if form else "one array"


def _declared(signature: Signature, config: ModelConfig) -> Iterator[tuple[str, np.dtype[Any], int, Sequence[int]]]:
    """Name, dtype, number of dimensions and dims of each output whose arrays are as the annotation says.

    Those of BYTES and BF16 are converted; ragged batches, shape tensors and outputs with a `reshape` have other shapes.
    """
    if config.batch_output or any(each.allow_ragged_batch for each in config.input):
        return
    reshaped = {each.name for each in config.output if each.reshape is not None or each.is_shape_tensor}
    for result in signature.results:
        if result.spec.datatype not in ("BYTES", "BF16") and result.name not in reshaped:
            rank = len(result.spec.dims) + (config.max_batch_size > 0)
            yield result.name, tensor_type(result.spec.datatype).dtype, rank, result.spec.dims


def _shown(result: Any) -> str:
    if isinstance(result, tuple):
        return f"a tuple of {len(result)}"
    if isinstance(result, Mapping):
        return f"a dict with {', '.join(map(str, result)) or 'nothing'}"
    return "None" if result is None else f"a {type(result).__name__}"
