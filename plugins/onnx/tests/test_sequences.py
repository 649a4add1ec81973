"""ONNX models of sequences behind a whole server, whose states the server keeps."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import naiad_onnx
import naiad_scheduler_sequence
from naiad.errors import InvalidArgumentError, ModelNotReadyError
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.tensors import Tensor
from naiad_testing import serve

from . import stateful

PLUGINS = [naiad_onnx, naiad_scheduler_sequence]
ZERO = 'initial_state { name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true }'


class Sequences:
    """Sends requests of sequences to the one model."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def ask(self, sequence: int | str, value: Any, start: bool = False, end: bool = False, requested: Any = ()) -> Any:
        """The outputs as arrays."""
        response = self._client.send(self.request(sequence, value, start, end, requested))
        return {name: tensor.array for name, tensor in response.outputs.items()}

    def all(self, *requests: Any) -> list[Any]:
        return self._client.send_all(requests)

    def request(
        self, sequence: int | str, value: Any, start: bool = False, end: bool = False, requested: Any = ()
    ) -> Any:
        request = self._client.request(INPUT=value)
        request.correlation_id, request.sequence_start, request.sequence_end = sequence, start, end
        request.requested = requested
        return request


@contextmanager
def serving(folder: Path, proto: Any, config: str, initial: bytes = b"") -> Iterator[Sequences]:
    model = folder / "m"
    (model / "1").mkdir(parents=True)
    (model / "1" / "model.onnx").write_bytes(proto.SerializeToString())
    (model / "config.pbtxt").write_text(config)
    if initial:
        (model / "initial_state").mkdir()
        (model / "initial_state" / "start").write_bytes(initial)
    with serve(model, plugins=PLUGINS) as client:
        yield Sequences(client)


@pytest.mark.parametrize("strategy", ["", "direct {}", "oldest { max_candidate_sequences: 4 }"])
@pytest.mark.parametrize("batching", ["", "max_batch_size: 4"])
def test_sums_are_kept_from_request_to_request(tmp_path, float_array, strategy, batching):
    config = stateful.config(state=ZERO, batching=batching, sequences=strategy, instances=2)
    shape = ("n", 1) if batching else (1,)
    value = (lambda number: float_array([[number]])) if batching else (lambda number: float_array([number]))

    with serving(tmp_path, stateful.adder(shape), config) as model:
        first = model.ask(1, value(1), start=True)
        other = model.ask(2, value(10), start=True, end=True)
        second = model.ask(1, value(2))
        third = model.ask(1, value(3), end=True)

    assert [each["OUTPUT"].item() for each in (first, other, second, third)] == [1, 10, 3, 6]
    assert [list(each) for each in (first, third)] == [["OUTPUT"], ["OUTPUT"]]


@pytest.mark.parametrize("datatype", list(TENSOR_TYPES))
def test_a_state_of_every_datatype_comes_back_with_the_next_request(tmp_path, datatype):
    kind = {"BYTES": "STRING"}.get(datatype, datatype)
    element = {"BYTES": "STRING", "FP16": "FLOAT16", "FP32": "FLOAT", "FP64": "DOUBLE", "BF16": "BFLOAT16"}
    first, second = [[True]], [[False]]
    if datatype == "BYTES":
        first, second = np.array([["é"]], object), np.array([[""]], object)
    elif datatype != "BOOL":
        first, second = [[3]], [[4]]

    proto = stateful.delayer(TensorProto.DataType.Value(element.get(datatype, datatype)))
    with serving(tmp_path, proto, stateful.config(f"TYPE_{kind}")) as model:
        nothing, three, four = (
            model.ask(1, value, start=number == 0)["OUTPUT"] for number, value in enumerate((first, second, first))
        )

    sent = [
        Tensor.of("x", np.float32(each) if datatype == "BF16" else each, datatype).array for each in (first, second)
    ]
    assert [three.tolist(), four.tolist()] == [each.tolist() for each in sent]
    assert nothing.tolist() in ([[0]], [[False]], [[b""]])
    assert {three.dtype, nothing.dtype} == {TENSOR_TYPES[datatype].dtype}


def test_a_state_of_text_grows(tmp_path):
    with serving(tmp_path, stateful.joiner(), stateful.config("TYPE_STRING")) as model:
        answers = [
            model.ask("text", np.array([[word]], object), start=word == "now ")["OUTPUT"].item()
            for word in ("now ", "and ", "thén")
        ]

    assert answers == [b"now ", b"now and ", "now and thén".encode()]


def test_a_client_may_not_send_a_state(tmp_path, float_array):
    with serving(tmp_path, stateful.adder(), stateful.config(state=ZERO)) as model:
        request = model.request(1, float_array([[1]]), start=True)
        request.inputs = {**request.inputs, "INPUT_STATE": request.inputs["INPUT"]}

        (refused,) = model.all(request)

    assert isinstance(refused, InvalidArgumentError)
    assert "INPUT_STATE" in str(refused)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (ZERO.replace("zero_data: true", 'data_file: "start"'), "initial_state setting expects 4 bytes"),
        (
            ZERO.replace("zero_data: true", 'data_file: "../config.pbtxt"'),
            "'../config.pbtxt' leaves the folder of its kind",
        ),
        (
            ZERO.replace("zero_data: true", 'data_file: "/etc/hostname"'),
            "'/etc/hostname' leaves the folder of its kind",
        ),
        (ZERO.replace("zero_data: true", 'data_file: "none"'), "the file 'none' is not there"),
    ],
)
def test_a_broken_initial_state_is_refused_at_load(tmp_path, state, message):
    config = stateful.config(state=state)

    with pytest.raises(ModelNotReadyError) as caught, serving(tmp_path, stateful.adder(), config, b"abc"):
        pass

    assert message in str(caught.value)
