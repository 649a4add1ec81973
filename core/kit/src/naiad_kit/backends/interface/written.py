"""Tensors of a configuration: the dims that a model sees, the inputs that the server fills, the computed outputs."""

from naiad_config import ModelConfig, ModelInput, ModelOutput

Entry = ModelInput | ModelOutput


def model_dims(entry: Entry) -> tuple[int, ...]:
    """The dims of an input or output as the model sees them, without the batch dimension."""
    return tuple(entry.reshape.shape if entry.reshape is not None else entry.dims)


def reserved_inputs(config: ModelConfig) -> frozenset[str]:
    """The inputs that the server fills and no client sends: sequence controls, states, batch inputs."""
    names = {target for generated in config.batch_input for target in generated.target_name}
    if config.sequence_batching is not None:
        names |= {control.name for control in config.sequence_batching.control_input}
        names |= {state.input_name for state in config.sequence_batching.state}
    return frozenset(names)


def scattered_outputs(config: ModelConfig) -> frozenset[str]:
    """The outputs that come in one piece for a whole batch."""
    return frozenset(name for each in config.batch_output for name in each.target_name)


def wanted_outputs(config: ModelConfig) -> tuple[str, ...]:
    """The outputs that a run may have to compute: those of the configuration, and the states of sequences."""
    states = config.sequence_batching.state if config.sequence_batching is not None else ()
    return tuple(dict.fromkeys([*(each.name for each in config.output), *(each.output_name for each in states)]))
