"""What auto-complete fills, from an interface alone."""

from dataclasses import replace

import pytest

from naiad.errors import ConfigError
from naiad_config import DataType, ModelConfig, ModelInput, ModelOutput, ModelTensorReshape
from naiad_config.text import parse_text, to_text
from naiad_kit.backends.interface import Interface, completed

from .tensors import tensor_of

FLOAT = "tensor(float)"


def interface(inputs: dict[str, tuple[int, ...]], outputs: dict[str, tuple[int, ...]]) -> Interface:
    return Interface(
        tuple(tensor_of(name, FLOAT, shape) for name, shape in inputs.items()),
        tuple(tensor_of(name, FLOAT, shape) for name, shape in outputs.items()),
    )


ADD_SUB = interface({"A": (-1, 16), "B": (-1, 16)}, {"SUM": (-1, 16), "DIFFERENCE": (-1, 16)})


def test_an_empty_configuration_becomes_a_batching_one():
    config = completed(ModelConfig(name="m"), ADD_SUB, 4)

    assert to_text(config) == to_text(
        parse_text(
            """
            name: "m"
            max_batch_size: 4
            input [ { name: "A" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "B" data_type: TYPE_FP32 dims: [ 16 ] } ]
            output { name: "SUM" data_type: TYPE_FP32 dims: [ 16 ] }
            output { name: "DIFFERENCE" data_type: TYPE_FP32 dims: [ 16 ] }
            dynamic_batching { }
            """
        )
    )


def test_the_default_batch_size_is_a_setting():
    config = completed(ModelConfig(), ADD_SUB, 32)

    assert config.max_batch_size == 32


def test_a_default_batch_size_of_one_adds_no_dynamic_batching():
    config = completed(ModelConfig(), ADD_SUB, 1)

    assert config.max_batch_size == 1
    assert config.dynamic_batching is None


def test_an_explicit_batch_size_is_kept():
    config = completed(ModelConfig(max_batch_size=7), ADD_SUB, 4)

    assert config.max_batch_size == 7
    assert config.dynamic_batching is not None


def test_a_scheduler_that_is_written_is_kept():
    written = parse_text("sequence_batching { }")

    config = completed(written, ADD_SUB, 4)

    assert config.dynamic_batching is None
    assert config.sequence_batching == written.sequence_batching


@pytest.mark.parametrize(
    "model",
    [
        interface({"IN": (1, 16)}, {"OUT": (-1, 16)}),
        interface({"IN": (-1, 16)}, {"OUT": (1, 16)}),
        interface({"IN": (-1, 16), "SCALAR": ()}, {"OUT": (-1, 16)}),
        interface({}, {"OUT": (-1, 16)}),
    ],
)
def test_a_model_with_one_fixed_first_dim_does_not_batch(model):
    config = completed(ModelConfig(), model, 4)

    assert config.max_batch_size == 0
    assert config.dynamic_batching is None


def test_whole_shapes_stand_where_the_model_does_not_batch():
    config = completed(ModelConfig(), interface({"IN": (1, -1)}, {"OUT": (1, 3)}), 4)

    assert config.input == (ModelInput(name="IN", data_type=DataType.TYPE_FP32, dims=(1, -1)),)
    assert config.output == (ModelOutput(name="OUT", data_type=DataType.TYPE_FP32, dims=(1, 3)),)


def test_batching_asked_of_a_model_that_cannot_is_refused_with_the_tensor():
    model = interface({"IN": (1, 16)}, {"OUT": (-1, 16)})

    with pytest.raises(ConfigError) as caught:
        completed(ModelConfig(name="m", max_batch_size=8), model, 4)

    message = str(caught.value)
    assert (
        "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified"
        in message
    )
    assert "'IN' has shape [1,16]" in message


@pytest.mark.parametrize(("shape", "size"), [((-1,), 4), ((), 0)])
def test_a_scalar_gets_one_dim_and_an_empty_reshape(shape, size):
    config = completed(ModelConfig(), interface({"IN": shape}, {"OUT": shape}), 4)

    assert config.max_batch_size == size
    assert config.input[0].dims == (1,)
    assert config.input[0].reshape == ModelTensorReshape(shape=())
    assert config.output[0].reshape == ModelTensorReshape(shape=())


def test_a_complete_configuration_stays_as_it_is():
    written = parse_text(
        """
        input [ { name: "A" data_type: TYPE_FP32 dims: [ -1, 16 ] } ]
        output [ { name: "SUM" data_type: TYPE_FP32 dims: [ -1, 16 ] } ]
        """
    )

    assert completed(written, ADD_SUB, 4) is written


def test_what_is_written_is_kept_and_the_rest_filled():
    written = parse_text('input [ { name: "B" dims: [ 8 ] } ] output [ { name: "DIFFERENCE" } ]')

    config = completed(written, ADD_SUB, 4)

    assert [(entry.name, entry.data_type, entry.dims) for entry in config.input] == [
        ("B", DataType.TYPE_FP32, (8,)),
        ("A", DataType.TYPE_FP32, (16,)),
    ]
    assert [(entry.name, entry.dims) for entry in config.output] == [("DIFFERENCE", (16,))]


def test_entries_without_a_name_take_the_names_left_in_order():
    written = parse_text("input [ { dims: [ 16 ] }, { } ]")

    config = completed(written, ADD_SUB, 4)

    assert [entry.name for entry in config.input] == ["A", "B"]


def test_dims_of_the_whole_shape_say_that_their_author_does_not_batch():
    written = parse_text('input [ { name: "A" dims: [ -1, 16 ] } ]')

    config = completed(written, ADD_SUB, 4)

    assert config.max_batch_size == 0
    assert config.input[1].dims == (-1, 16)


def test_controls_and_states_of_sequences_are_no_inputs_or_outputs():
    model = interface({"IN": (-1, 1), "START": (-1, 1), "STATE_IN": (-1, 1)}, {"OUT": (-1, 1), "STATE_OUT": (-1, 1)})
    written = parse_text(
        """
        sequence_batching {
          control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]
          state [ { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ 1 ] } ]
        }
        """
    )

    config = completed(written, model, 4)

    assert [entry.name for entry in config.input] == ["IN"]
    assert [entry.name for entry in config.output] == ["OUT"]


def test_targets_of_batch_inputs_are_no_inputs():
    written = parse_text('batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "B" source_input: "A" } ]')

    config = completed(written, ADD_SUB, 4)

    assert [entry.name for entry in config.input] == ["A"]


def test_optional_inputs_are_not_added_and_do_not_decide_on_batching():
    inputs = (tensor_of("IN", FLOAT, (-1, 3)), tensor_of("SCALE", FLOAT, (1,), optional=True))
    model = Interface(inputs, (tensor_of("OUT", FLOAT, (-1, 3)),))

    config = completed(ModelConfig(), model, 4)

    assert config.max_batch_size == 4
    assert [entry.name for entry in config.input] == ["IN"]


def test_outputs_that_are_no_tensors_are_left_out():
    outputs = (tensor_of("label", "tensor(int64)", (-1,)), tensor_of("scores", "seq(map(int64,tensor(float)))", ()))
    model = Interface((tensor_of("IN", FLOAT, (-1, 3)),), outputs)

    config = completed(ModelConfig(), model, 4)

    assert config.max_batch_size == 4
    assert [entry.name for entry in config.output] == ["label"]


def test_dims_are_not_guessed_where_the_model_declares_no_rank():
    unranked = Interface(
        (replace(tensor_of("A", FLOAT, ()), unranked=True),), (replace(tensor_of("SUM", FLOAT, ()), unranked=True),)
    )
    written = 'name: "m" input { name: "A" data_type: TYPE_FP32 dims: [ 3 ] } output { name: "SUM" dims: [ 3 ] }'

    with pytest.raises(ConfigError) as raised:
        completed(ModelConfig(name="m"), unranked, 4)
    result = completed(parse_text(written), unranked, 4)
    batching = completed(parse_text(f"{written} max_batch_size: 8"), unranked, 4)

    assert "the model declares no rank for 'A'" in str(raised.value)
    assert "the model declares no rank for 'SUM'" in str(raised.value)
    assert (result.max_batch_size, result.output[0].data_type) == (0, DataType.TYPE_FP32)
    assert batching.max_batch_size == 8
