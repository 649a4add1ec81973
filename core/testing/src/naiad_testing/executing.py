"""Executing batches on an instance without a server, and comparing what comes out, for the checks of backends."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from naiad._engine.responses import ResponseBuilder
from naiad.backend import Batch, Instance
from naiad.errors import NaiadError
from naiad.types import Request, Response
from naiad_config import ModelConfig
from naiad_tensors.datatypes import wire_name
from naiad_tensors.tensors import Tensor
from naiad_testing.senders import CollectingSender
from naiad_testing.simulation import ContractBroken

PATIENCE = 60.0
"""Seconds that an execution may take before it counts as hanging."""


def batches(requests: Sequence[Mapping[str, Any]], most: int) -> Iterator[tuple[int, Sequence[Mapping[str, Any]]]]:
    """Neighbouring requests with inputs of one shape, as many as fit into a batch, with the number of the first."""
    start = 0
    while start < len(requests):
        stop, size = start, 0
        while stop < len(requests) and _shapes(requests[stop]) == _shapes(requests[start]):
            size += _size(requests[stop])
            if size > most:
                break
            stop += 1
        stop = max(stop, start + 1)
        yield start, requests[start:stop]
        start = stop


def _shapes(inputs: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
    return {name: np.shape(value)[1:] for name, value in inputs.items()}


def _size(inputs: Mapping[str, Any]) -> int:
    return int(np.shape(next(iter(inputs.values())))[0])


def outputs_of(
    instance: Instance, requests: Sequence[Mapping[str, Any]], config: ModelConfig
) -> list[Sequence[Mapping[str, np.ndarray]]]:
    """The outputs of one execution: the responses for each request, one for each but where the model streams.

    Raises what the instance answered as errors, and TimeoutError when a sender never gets its final response.
    """
    return [list(map(_arrays, responses)) for responses in outcomes_of(instance, requests, config)]


def outcomes_of(
    instance: Instance, requests: Sequence[Mapping[str, Any]], config: ModelConfig
) -> list[Sequence[Response | NaiadError]]:
    """The responses and errors of one execution for each request; raises what the instance raises."""
    datatypes = {each.name: wire_name(each.data_type) for each in config.input}
    received = [
        Request(config.name, {name: _tensor(name, value, datatypes.get(name, "")) for name, value in each.items()})
        for each in requests
    ]
    sizes = [_size(each) if config.max_batch_size > 0 else 1 for each in requests]
    senders = [CollectingSender() for _ in received]
    reader = ResponseBuilder(config, 1)
    batch = Batch(received, sizes, senders.__getitem__, reader.layout)
    answer = instance.execute(batch)
    if isinstance(answer, Future):
        answer = answer.result(PATIENCE)
    outcomes: list[Sequence[Response | NaiadError]] = []
    for outcome, request, size, sender in zip(reader.read(answer, batch), received, sizes, senders, strict=True):
        sent = [] if outcome is not None else sender.wait_until_ended(PATIENCE)
        streamed = [each if isinstance(each, NaiadError) else reader.response(each, request, size) for each in sent]
        outcomes.append(streamed if outcome is None else [outcome])
    return outcomes


def _arrays(outcome: Response | NaiadError) -> Mapping[str, np.ndarray]:
    if isinstance(outcome, NaiadError):
        raise outcome
    return {name: tensor.array for name, tensor in outcome.outputs.items()}


def _tensor(name: str, value: Any, datatype: str) -> Tensor:
    """A tensor that cannot be written to, as a received one."""
    tensor = Tensor.of(name, value, datatype)
    array = tensor.array.view()
    array.flags.writeable = False
    return Tensor(name, tensor.datatype, tensor.shape, array)


def compare(
    responses: Sequence[Mapping[str, np.ndarray]],
    expected: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    tolerance: float,
    where: str,
) -> None:
    """Raise ContractBroken, saying `where`, when the outputs of the responses are not those expected."""
    if isinstance(expected, Mapping):
        expected = [expected]
    if len(responses) != len(expected):
        raise ContractBroken(f"{where}: there are {len(responses)} responses, expected {len(expected)}")
    for number, (outputs, value) in enumerate(zip(responses, expected, strict=True)):
        _compare_one(outputs, value, tolerance, f"{where}, response {number}" if len(expected) > 1 else where)


def _compare_one(outputs: Mapping[str, np.ndarray], expected: Mapping[str, Any], tolerance: float, where: str) -> None:
    for name, value in expected.items():
        if name not in outputs:
            raise ContractBroken(f"{where}: there is no output '{name}', only {list(outputs)}")
        output, value = outputs[name], np.asarray(value)
        if output.shape != value.shape:
            raise ContractBroken(f"{where}: output '{name}' has shape {output.shape}, expected {value.shape}")
        if output.dtype.kind == "f":
            equal = np.allclose(output, value, rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            equal = output.tolist() == value.tolist()
        if not equal:
            raise ContractBroken(f"{where}: output '{name}' is {output.tolist()}, expected {value.tolist()}")
