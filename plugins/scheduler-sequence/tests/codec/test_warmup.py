"""Warming up models of sequences: samples go past the scheduler, so controls and states come from them or are made."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naiad_scheduler_sequence
import naiad_warmup
from naiad.backend import Answer, Batch, ModelContext
from naiad.errors import InvalidArgumentError
from naiad.hookspecs import hookimpl
from naiad.types import Request
from naiad.warmup import Warmup
from naiad_tensors.tensors import Tensor
from naiad_testing.in_loop import running, write_model
from naiad_testing.steered import Steered
from naiad_warmup.samples import WarmupSample, warmup_of

CONFIG = """
name: "m" max_batch_size: {mbs} instance_group {{ count: {instances} kind: KIND_CPU }}
input {{ name: "INPUT" data_type: TYPE_FP32 dims: [ 2 ] }}
output {{ name: "OUTPUT" data_type: TYPE_FP32 dims: [ 2 ] }}
sequence_batching {{
  control_input [
    {{ name: "START" control {{ kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }} }},
    {{ name: "END" control {{ kind: CONTROL_SEQUENCE_END fp32_false_true: [ 0, 1 ] }} }},
    {{ name: "READY" control {{ kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] }} }},
    {{ name: "CORRID" control {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }} }}
  ]
  state {{ input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ 3 ]
    initial_state {{ name: "first" data_type: TYPE_FP32 dims: [ 3 ] data_file: "threes" }} {state} }}
}}
model_warmup {{ name: "sample" batch_size: {batch} inputs [
  {{ key: "INPUT" value {{ data_type: TYPE_FP32 dims: [ 2 ] zero_data: true }} }} {more} ] }}
"""


class Model:
    """An instance that records its batches and the ends of sequences."""

    def __init__(self, answer: Callable[[Batch], Answer]) -> None:
        self.batches: list[Batch] = []
        self.ended: list[tuple[Any, str]] = []
        self._answer = answer

    def execute(self, batch: Batch) -> Answer:
        self.batches.append(batch)
        return self._answer(batch)

    def sequence_ended(self, correlation_id: Any, reason: str) -> None:
        self.ended.append((correlation_id, str(reason)))

    def close(self) -> None:
        return None

    def inputs_of(self, *names: str) -> list[Any]:
        (batch,) = self.batches
        return [batch.input(name).tolist() for name in names]


def accumulating(batch: Batch) -> Answer:
    return {"OUTPUT": batch.input("INPUT"), "STATE_OUT": batch.input("STATE_IN") + 1}


class Samples:
    """A plugin whose warm-up has these samples."""

    def __init__(self, samples: Sequence[WarmupSample]) -> None:
        self._samples = samples

    @hookimpl
    def naiad_warmup(self, context: ModelContext) -> Sequence[Warmup]:
        return warmup_of(context, self._samples)


async def warm(
    root: Path,
    *models: Model,
    warmup: object = naiad_warmup,
    mbs: int = 4,
    batch: int = 1,
    state: str = "",
    more: str = "",
) -> None:
    """Load a model with these instances, one after the other, which are warmed up as the configuration says."""
    config = CONFIG.format(mbs=mbs, instances=len(models), batch=batch, state=state, more=more)
    folder = write_model(root, "m", config) / "initial_state"
    folder.mkdir()
    (folder / "threes").write_bytes(np.full(3, 3, np.float32).tobytes())
    instances = iter(models)
    backend = Steered(instantiate=lambda placement: next(instances))
    async with running(root, backend, naiad_scheduler_sequence, warmup, model_control_mode="explicit") as server:
        await server.load("m")


async def test_a_sample_without_controls_and_states_is_a_sequence_of_one_request(tmp_path: Path) -> None:
    model = Model(accumulating)

    await warm(tmp_path, model)

    assert model.inputs_of("START", "END", "READY", "CORRID", "STATE_IN") == [
        [[1]],
        [[1]],
        [[True]],
        [[1]],
        [[3, 3, 3]],
    ]
    assert model.ended == [(1, "end")]


async def test_each_request_of_a_sample_is_a_sequence_of_its_own(tmp_path: Path) -> None:
    model = Model(accumulating)

    await warm(tmp_path, model, batch=3)

    assert model.inputs_of("CORRID", "START") == [[[1], [2], [3]], [[1], [1], [1]]]
    assert [request.correlation_id for request in model.batches[0].requests] == [1, 2, 3]
    assert model.ended == [(1, "end"), (2, "end"), (3, "end")]


async def test_controls_and_states_of_a_sample_are_what_the_model_gets(tmp_path: Path) -> None:
    model = Model(accumulating)
    more = """
      , { key: "START" value { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } }
      , { key: "STATE_IN" value { data_type: TYPE_FP32 dims: [ 3 ] zero_data: true } }"""

    await warm(tmp_path, model, more=more)

    assert model.inputs_of("START", "READY", "STATE_IN") == [[[0]], [[True]], [[0, 0, 0]]]


async def test_a_model_without_batching_gets_tensors_without_rows(tmp_path: Path) -> None:
    model = Model(accumulating)

    await warm(tmp_path, model, mbs=0)

    assert model.inputs_of("START", "STATE_IN") == [[1], [3, 3, 3]]


@pytest.mark.parametrize("batch", [1, 2])
async def test_a_state_of_one_buffer_warms_up_and_leaves_the_initial_state_alone(tmp_path: Path, batch: int) -> None:
    first, second = Model(accumulating), Model(accumulating)

    await warm(tmp_path, first, second, batch=batch, state="use_same_buffer_for_input_output: true")

    assert second.inputs_of("STATE_IN") == [[[3, 3, 3]] * batch]


async def test_requests_of_a_plugin_keep_the_sequence_that_they_name(tmp_path: Path) -> None:
    model = Model(accumulating)
    tensor = Tensor.of("INPUT", np.zeros((1, 2), np.float32))
    requests = [
        Request("m", {"INPUT": tensor}, correlation_id=9, sequence_start=True),
        Request("m", {"INPUT": tensor}, correlation_id=9, sequence_end=True),
    ]

    samples = [WarmupSample(f"step {n}", [each]) for n, each in enumerate(requests)]
    await warm(tmp_path, model, warmup=Samples(samples))

    flags = [(batch.input("START").item(), batch.input("END").item()) for batch in model.batches]
    assert flags == [(1, 0), (0, 1)]
    assert [batch.input("CORRID").item() for batch in model.batches] == [9, 9]
    assert model.ended == [(9, "end")]


def sample_with_start(start: np.ndarray) -> Samples:
    """A plugin whose sample has that START."""
    tensors = {"INPUT": Tensor.of("INPUT", np.zeros((1, 2), np.float32)), "START": Tensor.of("START", start)}
    return Samples([WarmupSample("sample", [Request("m", tensors)])])


CONFIGURED = ', { key: "START" value { data_type: TYPE_INT32 dims: [ 2 ] zero_data: true } }'


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (
            {"warmup": sample_with_start(np.zeros((1, 1), np.float32))},
            "'START', which sequence_batching of model 'm' adds, is FP32 [1, 1]",
        ),
        ({"warmup": sample_with_start(np.zeros((1, 2), np.int32))}, "it must be INT32 [1, 1]"),
        ({"more": CONFIGURED}, "it must be INT32 [1, 1]"),
    ],
    ids=["another type", "another shape", "another shape in the configuration"],
)
async def test_a_control_of_another_type_or_shape_fails_and_says_what_it_must_be(
    tmp_path: Path, chosen: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError) as failed:
        await warm(tmp_path, Model(accumulating), **chosen)

    assert "warmup sample 'sample'" in str(failed.value)
    assert message in str(failed.value)
