"""Control and state tensors of sequence models, beside the declared inputs and outputs."""

from naiad_config import DataType, ModelConfig, ModelInput, ModelOutput
from naiad_config.sequence_tensors import extra_inputs, extra_outputs
from naiad_config.text import read_text

SEQUENCES = """
output { name: "SEEN" data_type: TYPE_FP32 dims: [ 2 ] }
sequence_batching {
  control_input [
    { name: "S" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } },
    { name: "R" control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } },
    { name: "E" control { kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] } },
    { name: "C" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }
  ]
  state [
    { input_name: "IN" output_name: "OUT" data_type: TYPE_INT64 dims: [ -1, 3 ] },
    { input_name: "SEEN_IN" output_name: "SEEN" data_type: TYPE_FP32 dims: [ 2 ] }
  ]
}
"""


def test_controls_come_first_each_with_the_type_of_its_values_and_then_the_states() -> None:
    config = read_text(SEQUENCES, file="").config

    result = extra_inputs(config)

    assert result == (
        ModelInput(name="S", data_type=DataType.TYPE_INT32, dims=(1,)),
        ModelInput(name="R", data_type=DataType.TYPE_FP32, dims=(1,)),
        ModelInput(name="E", data_type=DataType.TYPE_BOOL, dims=(1,)),
        ModelInput(name="C", data_type=DataType.TYPE_STRING, dims=(1,)),
        ModelInput(name="IN", data_type=DataType.TYPE_INT64, dims=(-1, 3)),
        ModelInput(name="SEEN_IN", data_type=DataType.TYPE_FP32, dims=(2,)),
    )


def test_a_state_that_clients_see_is_no_extra_output() -> None:
    config = read_text(SEQUENCES, file="").config

    outputs = extra_outputs(config)

    assert outputs == (ModelOutput(name="OUT", data_type=DataType.TYPE_INT64, dims=(-1, 3)),)


def test_a_model_without_sequences_has_nothing_extra() -> None:
    config = ModelConfig(name="m")

    outputs = (extra_inputs(config), extra_outputs(config))

    assert outputs == ((), ())
