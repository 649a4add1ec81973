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
from naiad.datatypes import TENSOR_TYPES
from naiad.errors import InvalidArgumentError, ModelFailedError, ModelNotReadyError
from naiad.types import Tensor
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


@pytest.mark.parametrize("kind", ["INT32", "FP32", "FP64", "INT64"])
def test_a_model_that_looks_at_start_needs_no_initial_state(tmp_path, kind):
    dtype = {"INT32": np.int32, "FP32": np.float32, "FP64": np.float64, "INT64": np.int64}[kind]
    element = {"INT32": TensorProto.INT32, "FP32": TensorProto.FLOAT, "FP64": TensorProto.DOUBLE}.get(
        kind, TensorProto.INT64
    )
    config = stateful.config(f"TYPE_{kind}", dims="-1", sequences=stateful.START)

    with serving(tmp_path, stateful.adder_with_start(element), config) as model:
        answers = [
            model.ask("s", np.array([[number]], dtype), start=number in (5, 100))["OUTPUT"] for number in (5, 7, 100, 1)
        ]

    assert [each.item() for each in answers] == [5, 12, 100, 101]
    assert {each.dtype for each in answers} == {np.dtype(dtype)}


def test_a_state_begins_with_what_its_file_holds(tmp_path, float_array):
    state = 'initial_state { name: "file" data_type: TYPE_FP32 dims: [ 1 ] data_file: "start" }'

    with serving(tmp_path, stateful.adder(), stateful.config(state=state), np.float32([100]).tobytes()) as model:
        answers = [
            model.ask(1, float_array([[number]]), start=number in (1, 3))["OUTPUT"].item() for number in (1, 2, 3)
        ]

    assert answers == [101, 103, 103]


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


def test_a_state_of_text_begins_with_what_its_file_holds(tmp_path):
    state = 'initial_state { name: "file" data_type: TYPE_STRING dims: [ 1 ] data_file: "start" }'
    config = stateful.config("TYPE_STRING", state=state)

    with serving(tmp_path, stateful.joiner(), config, b"\x05\0\0\0once ") as model:
        answer = model.ask(1, np.array([["more"]], object), start=True)["OUTPUT"].item()

    assert answer == b"once more"


def test_a_state_of_variable_dims_grows(tmp_path, float_array):
    shown = ', { name: "OUTPUT_STATE" data_type: TYPE_FP32 dims: [ -1 ] }'
    config = stateful.config(dims="-1", output=shown)

    with serving(tmp_path, stateful.collector(), config) as model:
        answers = [model.ask(1, float_array([[number]]), start=number == 1) for number in (1, 2, 3)]

    assert [each["OUTPUT_STATE"].tolist() for each in answers] == [[[0, 1]], [[0, 1, 2]], [[0, 1, 2, 3]]]
    assert [each["OUTPUT"].item() for each in answers] == [1, 3, 6]


@pytest.mark.parametrize("strategy", ["direct {}", "oldest { max_candidate_sequences: 4 }"])
def test_states_of_different_lengths_run_beside_each_other(tmp_path, float_array, strategy):
    config = stateful.config(dims="-1", sequences=strategy)

    with serving(tmp_path, stateful.collector(), config) as model:
        for number in (1, 2, 3):
            model.ask(1, float_array([[number]]), start=number == 1)
        model.ask(2, float_array([[10]]), start=True)
        one, two = model.all(model.request(1, float_array([[4]])), model.request(2, float_array([[20]])))
        three, four = model.all(model.request(2, float_array([[30]])), model.request(1, float_array([[5]])))

    assert [each.outputs["OUTPUT"].array.item() for each in (one, two, three, four)] == [10, 30, 60, 15]


@pytest.mark.parametrize("strategy", ["direct {}", "oldest { max_candidate_sequences: 4 }"])
def test_a_request_that_fails_leaves_the_state_as_it_was(tmp_path, strategy):
    config = stateful.config(state=ZERO, sequences=strategy).replace(
        'name: "INPUT" data_type: TYPE_FP32', 'name: "INPUT" data_type: TYPE_INT64'
    )

    with serving(tmp_path, stateful.picker(), config) as model:
        before = model.ask(1, np.array([[0]]), start=True)["OUTPUT"].item()
        model.ask(2, np.array([[1]]), start=True)
        bad, good = model.all(model.request(1, np.array([[9]])), model.request(2, np.array([[2]])))
        after = model.ask(1, np.array([[3]]))["OUTPUT"].item()

    assert (before, after) == (10, 23)
    assert isinstance(bad, ModelFailedError)
    assert good.outputs["OUTPUT"].array.item() == 23


def test_a_state_that_is_also_an_output_comes_when_it_is_asked_for(tmp_path, float_array):
    shown = ', { name: "OUTPUT_STATE" data_type: TYPE_FP32 dims: [ 1 ] }'

    with serving(tmp_path, stateful.adder(), stateful.config(state=ZERO, output=shown)) as model:
        every = model.ask(1, float_array([[1]]), start=True)
        named = model.ask(1, float_array([[1]]), requested=("OUTPUT_STATE",))
        without = model.ask(1, float_array([[1]]), requested=("OUTPUT",))
        after = model.ask(1, float_array([[1]]))

    assert [{name: array.item() for name, array in each.items()} for each in (every, named, without, after)] == [
        {"OUTPUT": 1, "OUTPUT_STATE": 1},
        {"OUTPUT_STATE": 2},
        {"OUTPUT": 3},
        {"OUTPUT": 4, "OUTPUT_STATE": 4},
    ]


def test_one_buffer_for_input_and_output_changes_no_answer(tmp_path, float_array):
    config = stateful.config(state=f"{ZERO} use_same_buffer_for_input_output: true")

    with serving(tmp_path, stateful.adder(), config) as model:
        answers = [model.ask(1, float_array([[number]]), start=number == 1)["OUTPUT"].item() for number in (1, 2, 3)]

    assert answers == [1, 3, 6]


def test_answers_that_a_client_still_holds_stay_as_they_were(tmp_path, float_array):
    with serving(tmp_path, stateful.adder(), stateful.config(state=ZERO)) as model:
        held = [model.ask(1, float_array([[1]]), start=number == 0)["OUTPUT"] for number in range(5)]

    assert [each.item() for each in held] == [1, 2, 3, 4, 5]


def test_controls_are_tensors_of_the_types_that_are_written(tmp_path, float_array):
    kinds = {"INPUT": "FP32", "START": "BOOL", "END": "FP32", "READY": "INT32", "ID": "INT64"}
    outputs = ", ".join(f'{{ name: "{name}_SEEN" data_type: TYPE_{kind} dims: [ 1 ] }}' for name, kind in kinds.items())
    config = f"""
    max_batch_size: 4
    instance_group [ {{ count: 1 }} ]
    input [ {{ name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] }} ]
    output [ {outputs} ]
    sequence_batching {{
      control_input [
        {{ name: "START" control [ {{ kind: CONTROL_SEQUENCE_START bool_false_true: [ false, true ] }} ] }},
        {{ name: "END" control [ {{ kind: CONTROL_SEQUENCE_END fp32_false_true: [ -1, 2.5 ] }} ] }},
        {{ name: "READY" control [ {{ kind: CONTROL_SEQUENCE_READY int32_false_true: [ 3, 4 ] }} ] }},
        {{ name: "ID" control [ {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 }} ] }}
      ]
    }}
    """

    with serving(tmp_path, stateful.controlled(), config) as model:
        first = model.ask(7, float_array([[1]]), start=True)
        second = model.ask(7, float_array([[1]]))
        last = model.ask(7, float_array([[1]]), end=True)

    names = ("START_SEEN", "END_SEEN", "READY_SEEN", "ID_SEEN")
    assert [[each[name].tolist() for name in names] for each in (first, second, last)] == [
        [[[True]], [[-1.0]], [[4]], [[7]]],
        [[[False]], [[-1.0]], [[4]], [[7]]],
        [[[False]], [[2.5]], [[4]], [[7]]],
    ]


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
        (f"{ZERO} {ZERO}", "must contain exactly one or zero element. Found '2' elements"),
        (
            ZERO.replace("FP32", "INT32"),
            "data type used for 'initial_state' field of state 'INPUT_STATE' does not match",
        ),
        (ZERO.replace('name: "zero"', ""), "Field 'name' must be set when using initial_state for state input"),
        (ZERO.replace("dims: [ 1 ]", "dims: [ -1 ]"), "contains variable dimensions"),
        (ZERO.replace("dims: [ 1 ]", "dims: [ 2 ]"), "doesn't match 'state' dim"),
        (ZERO.replace("dims: [ 1 ]", "dims: [ 1, 1 ]"), "Number of dimensions in 'initial_state' doesn't match"),
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
