"""Executing batches of an instance behind a server, and comparing what comes out, for the checks of backends."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from naiad.backend import Answer, Backend, BackendTraits, Batch, Instance, ModelContext, Placement
from naiad.errors import NaiadError
from naiad.hookspecs import hookimpl
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, SchedulerFactory, Ticket
from naiad.server import ServerApi
from naiad.types import Request, Response
from naiad_config import InstanceKind, ModelConfig, ModelInstanceGroup, ModelParameter
from naiad_tensors.datatypes import wire_name
from naiad_tensors.tensors import Tensor
from naiad_testing.serving import serve
from naiad_testing.simulation import ContractBroken

PATIENCE = 60.0
"""Seconds that an execution may take before it counts as hanging."""

_NAME = "naiad-testing"
_SECONDS_TO_GATHER = 1.0
"""How long the requests of a batch wait for others that are refused."""

_OPTIONS = {"exit-timeout-secs": 1.0}


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

    Raises the error of a request, and TimeoutError when one is not answered to its end.
    """
    return [list(map(_arrays, responses)) for responses in outcomes_of(instance, requests, config)]


def outcomes_of(
    instance: Instance, requests: Sequence[Mapping[str, Any]], config: ModelConfig
) -> list[Sequence[Response | NaiadError]]:
    """The responses and errors for each of these requests, which a server executes as one batch on the instance.

    Raises what the instance raises, and TimeoutError when a request is not answered to its end.
    """
    datatypes = {each.name: wire_name(each.data_type) for each in config.input}
    received = [
        Request(config.name, {name: _tensor(name, value, datatypes.get(name, "")) for name, value in each.items()})
        for each in requests
    ]

    async def gathered(server: ServerApi) -> list[Sequence[Response | NaiadError]]:
        return await asyncio.wait_for(asyncio.gather(*(_outcomes(server, each) for each in received)), PATIENCE)

    with TemporaryDirectory(prefix="naiad-testing-") as folder:
        model = Path(folder) / config.name
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(f'backend: "{_NAME}"')
        bench = _Bench(instance, config, len(requests))
        with serve(model, plugins=[bench], options=_OPTIONS) as client:
            outcomes = client.wait_for(gathered)
        if bench.error is not None:
            raise bench.error
        return outcomes


async def _outcomes(server: ServerApi, request: Request) -> Sequence[Response | NaiadError]:
    try:
        responses = [response async for response in server.stream(request)]
    except NaiadError as error:
        return [error]
    return [response.error or response for response in responses if not response.is_empty]


class _Bench:
    """A plugin with a backend whose only model has that instance, and a scheduler that joins `count` requests.

    `error` is what the instance has raised.
    """

    traits = BackendTraits(_NAME)
    name, choice = _NAME, ""

    def __init__(self, instance: Instance, config: ModelConfig, count: int) -> None:
        self.error: Exception | None = None
        self._instance = instance
        self._count = count
        self._config = ModelConfig(
            name=config.name,
            backend=_NAME,
            max_batch_size=config.max_batch_size,
            input=config.input,
            output=tuple(replace(each, label_filename="") for each in config.output),
            batch_input=config.batch_input,
            batch_output=config.batch_output,
            model_transaction_policy=config.model_transaction_policy,
            instance_group=(ModelInstanceGroup(kind=InstanceKind.KIND_CPU, count=1),),
            parameters={"scheduler": ModelParameter(string_value=_NAME)},
        )

    @hookimpl
    def naiad_backends(self) -> Sequence[Backend]:
        return [self]

    @hookimpl
    def naiad_schedulers(self) -> Sequence[SchedulerFactory]:
        return [self]

    def complete(self, context: ModelContext) -> ModelConfig:
        return self._config

    def load(self, context: ModelContext) -> "_Bench":
        return self

    def instantiate(self, placement: Placement) -> "_Bench":
        return self

    def execute(self, batch: Batch) -> Answer | Future[Answer]:
        try:
            return self._instance.execute(batch)
        except Exception as error:
            self.error = error
            raise

    def close(self) -> None:
        """The instance and its model are the caller's."""

    def create(self, config: ModelConfig, instances: int) -> "_Gathering":
        return _Gathering(self._count)


class _Gathering:
    """A scheduler that dispatches `count` requests as one batch, or fewer when others are refused."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._waiting: dict[int, float] = {}

    def arrive(self, ticket: Ticket) -> Drop | None:
        self._waiting[ticket.id] = ticket.arrival
        return None

    def settle(self, tickets: Sequence[int], now: float) -> bool | None:
        for ticket in tickets:
            self._waiting.pop(ticket, None)
        return None

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        if not self._waiting or not idle:
            return NOTHING
        due = min(self._waiting.values()) + _SECONDS_TO_GATHER
        if len(self._waiting) < self._count and now < due:
            return Decision(wake_at=due)
        tickets, self._waiting = tuple(self._waiting), {}
        return Decision((Dispatch(idle[0], tickets, "gathered"),))


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
