"""An instance of a TensorFlow model: one call of its session per batch."""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from naiad.backend import Answer, Batch
from naiad.errors import InvalidArgumentError
from naiad_config import DataType, ModelConfig
from naiad_kit.backends.execution import aligned, run_or_each_alone
from naiad_kit.backends.interface import ModelTensor, NarrowInputs, reserved_inputs, wanted_outputs
from naiad_tensorflow.artefact import Artefact
from naiad_tensorflow.runtime import describe_error, runtime

TESTED_VERSIONS = ("2.21.0",)
"""The releases of TensorFlow whose private way to prepare a call is known: add one when the tests pass with it."""

_MOST_CALLS = 32
"""The most combinations of outputs with a call that computes them alone; others compute all outputs."""


class TensorFlowInstance:
    """Executes batches on a session, which other instances may share: a session may run in many threads at once.

    `in_caller` has TensorFlow compute on the thread that calls. Arrays go in as they are (TensorFlow copies those that
    do not begin at a multiple of 64 bytes), and outputs are views on its own memory.
    When a batch of several requests fails, each is run alone, so that only those fail that make it fail.
    Raises InvalidArgumentError when TensorFlow cannot run the graph there.
    """

    def __init__(
        self, session: Any, artefact: Artefact, config: ModelConfig, narrow: NarrowInputs, in_caller: bool = False
    ) -> None:
        self._session = session
        self._tensors = artefact.tensors
        self._model = config.name
        self._outputs = wanted_outputs(config)
        self._narrow = narrow
        self._in_caller = in_caller
        self._calls: dict[tuple[tuple[str, ...], tuple[str, ...]], Any] = {}
        self._bf16_inputs = _in_bf16(artefact.interface.inputs)
        self._bf16_outputs = _in_bf16(artefact.interface.outputs)
        required = [each.name for each in config.input if not each.optional]
        try:
            self._prepared(tuple(sorted([*required, *reserved_inputs(config)])), self._outputs)
        except Exception as error:
            raise InvalidArgumentError(f"model '{self._model}' cannot be run: {describe_error(error)}") from error

    def execute(self, batch: Batch) -> Answer:
        """The outputs for the whole batch, or a reply or error for each request when the whole batch failed.

        Raises ModelFailedError, with what TensorFlow says, and InvalidArgumentError for a batch of one request.
        """
        return run_or_each_alone(batch, self._run, self._model, describe_error)

    def close(self) -> None:
        """Let go of the session."""
        self._calls.clear()
        del self._session

    def _run(self, batch: Batch) -> dict[str, np.ndarray]:
        requested = tuple(name for name in self._outputs if batch.wants(name))
        if not requested:
            return {}
        self._narrow.check(batch)
        names = tuple(sorted(batch.input_names))  # in whatever order the client sends them
        if len(self._calls) >= _MOST_CALLS and (names, requested) not in self._calls:
            requested = self._outputs
        call = self._calls.get((names, requested)) or self._prepared(names, requested)
        feeds = [self._feed(batch, name) for name in names]
        batch.mark_input_done()
        values = call(*feeds)
        batch.mark_infer_done()
        return {name: self._read(name, value) for name, value in zip(requested, values, strict=True)}

    def _prepared(self, names: tuple[str, ...], requested: tuple[str, ...]) -> Any:
        """The call for these inputs and outputs, which TensorFlow prunes and places its graph for.

        Prepared by its options a call of a small graph takes 22 µs; one of `Session.make_callable` takes 170. The first
        is not public, so a release that is not tested takes the second, which also copies inputs, and reports nodes on
        devices that are not there with the first request instead of at load.
        """
        from tensorflow.core.protobuf import config_pb2

        options = config_pb2.CallableOptions()
        options.feed.extend(self._tensors.inputs[name] for name in names)
        options.fetch.extend(self._tensors.outputs[name] for name in requested)
        if self._in_caller:
            options.run_options.inter_op_thread_pool = -1
        with self._session.graph.as_default():
            if runtime().__version__ in TESTED_VERSIONS:
                call = self._session._make_callable_from_options(options)
            else:
                public = self._session.make_callable(list(options.fetch), list(options.feed), accept_options=True)
                call = functools.partial(public, options=options.run_options)
        self._calls[names, requested] = call
        return call

    def _feed(self, batch: Batch, name: str) -> np.ndarray:
        array = batch.input(name)
        if name in self._bf16_inputs:
            array = array.view(runtime().bfloat16.as_numpy_dtype)
        return aligned(array)

    def _read(self, name: str, value: Any) -> np.ndarray:
        if isinstance(value, bytes):  # a scalar, which numpy would strip of NULs at its end
            return np.asarray(value, dtype=object)
        array = np.asarray(value)
        return array.view(np.uint16) if name in self._bf16_outputs else array


def _in_bf16(tensors: Iterable[ModelTensor]) -> frozenset[str]:
    return frozenset(tensor.name for tensor in tensors if tensor.data_type is DataType.TYPE_BF16)
