"""Sequence tensors: the controls and states that sequence batching adds to a model.

Their names and types stand in the `sequence_batching` of a configuration, beside its inputs and outputs.
"""

from naiad_config.model import ModelConfig
from naiad_config.sequences import SequenceControl
from naiad_config.tensors import DataType, ModelInput, ModelOutput


def extra_inputs(config: ModelConfig) -> tuple[ModelInput, ...]:
    """What the server feeds a model beside `config.input`: its controls, each of dims [1], then its states.

    As in `config.input`, `dims` leave out the batch dimension: a model with batching sees them behind one.
    """
    batching = config.sequence_batching
    if batching is None:
        return ()
    controls = (
        ModelInput(name=control_input.name, data_type=control_type(control), dims=(1,))
        for control_input in batching.control_input
        for control in control_input.control
    )
    states = (ModelInput(name=each.input_name, data_type=each.data_type, dims=each.dims) for each in batching.state)
    return (*controls, *states)


def extra_outputs(config: ModelConfig) -> tuple[ModelOutput, ...]:
    """What a model gives beside `config.output`: the states that are not also declared there, for clients to see."""
    batching = config.sequence_batching
    if batching is None:
        return ()
    declared = {output.name for output in config.output}
    return tuple(
        ModelOutput(name=each.output_name, data_type=each.data_type, dims=each.dims)
        for each in batching.state
        if each.output_name not in declared
    )


def control_type(control: SequenceControl) -> DataType:
    """The type of a control's tensor: that of its pair of values, or the one that a correlation id is given."""
    if control.int32_false_true:
        return DataType.TYPE_INT32
    if control.fp32_false_true:
        return DataType.TYPE_FP32
    if control.bool_false_true:
        return DataType.TYPE_BOOL
    return control.data_type
