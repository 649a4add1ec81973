"""Rules for ensembles: settings that they must not have, and steps that connect every input to every output."""

from collections.abc import Iterator, Mapping

from naiad_config.errors import Problem
from naiad_config.model import ModelConfig
from naiad_config.paths import element, entry
from naiad_config.scheduling import EnsembleStep, ModelEnsembling

_MAPPED = ("model_name", "input_map", "output_map")


def problems(config: ModelConfig) -> Iterator[Problem]:
    """What is wrong in an ensemble; whether its models fit together is known only when they are loaded."""
    scheduling = config.ensemble_scheduling
    name = config.name
    if config.platform != "ensemble" and (scheduling is None or config.platform or config.backend):
        if scheduling is not None:
            message = f"ensemble scheduling cannot be set for model '{name}' whose platform is not ensemble"
            yield Problem(message, "ensemble_scheduling", hint="set platform to 'ensemble'")
        return
    if config.backend:
        message = f"Ensemble model '{name}' must have platform type 'ensemble' and empty backend type"
        yield Problem(message, "backend", hint="leave 'backend' out")
    yield from _foreign(config)
    if scheduling is None:
        message = f"ensemble scheduling must be set for ensemble {name} whose platform is ensemble"
        yield Problem(message, "platform", hint="add ensemble_scheduling { step [ … ] }")
        return
    if not scheduling.step:
        yield Problem(f"must specify 'step' for ensemble '{name}'", "ensemble_scheduling")
    for index, step in enumerate(scheduling.step):
        for key in _MAPPED:
            if not getattr(step, key):
                path = element("ensemble_scheduling.step", index)
                yield Problem(f"must specify '{key}' in step {index} of ensemble '{name}'", path)
    yield from _graph(config, scheduling)


def _foreign(config: ModelConfig) -> Iterator[Problem]:
    """Settings of models that an ensemble, which executes nothing itself, cannot have."""
    hint = "set it for the models of the steps"
    if config.instance_group:
        message = f"instance group should not be specified for ensemble '{config.name}'"
        yield Problem(message, "instance_group", hint=hint)
    if config.optimization is not None:
        yield Problem(f"optimization should not be specified for ensemble '{config.name}'", "optimization", hint=hint)
    if config.model_warmup:
        yield Problem(f"model_warmup can not be specified for ensemble '{config.name}'", "model_warmup", hint=hint)


def _graph(config: ModelConfig, scheduling: ModelEnsembling) -> Iterator[Problem]:
    name = config.name
    writers: dict[str, EnsembleStep | None] = {model_input.name: None for model_input in config.input}
    for index, step in enumerate(scheduling.step):
        for output, tensor in step.output_map.items():
            if tensor in writers:
                message = f"ensemble tensor '{tensor}' can appear in an output map only once for ensemble '{name}'"
                path = entry(f"{element('ensemble_scheduling.step', index)}.output_map", output)
                yield Problem(f"{message} step {index}", path, hint="give it another name there")
            else:
                writers[tensor] = step
    readers = {tensor for step in scheduling.step for tensor in step.input_map.values()}
    outputs = {model_output.name for model_output in config.output}
    for index, model_input in enumerate(config.input):
        if model_input.name not in readers:
            message = f"ensemble input '{model_input.name}' for ensemble '{name}' is not used"
            yield Problem(message, f"input[{index}].name", hint="no step has it in its input_map")
    for tensor, writer in writers.items():
        if writer is not None and tensor not in readers and tensor not in outputs:
            path = _step_location(scheduling, writer, tensor)
            yield Problem(f"ensemble tensor '{tensor}' is unused in ensemble '{name}'", path)
    yield from _outputs(config, writers, readers)


def _outputs(config: ModelConfig, writers: Mapping[str, EnsembleStep | None], readers: set[str]) -> Iterator[Problem]:
    """Outputs that no chain of steps produces from the inputs."""
    connected = _connected(config, writers)
    for index, model_output in enumerate(config.output):
        path = f"output[{index}].name"
        if model_output.name in connected:
            continue
        if model_output.name not in writers and model_output.name not in readers:
            message = f"ensemble output '{model_output.name}' for ensemble '{config.name}' is not used"
            yield Problem(message, path, hint="no step has it in its output_map")
            continue
        missing = _unconnected(model_output.name, writers, connected)
        message = f"output '{model_output.name}' for ensemble '{config.name}' is not written"
        if missing != model_output.name:
            message += f": at least one of its depending tensors, '{missing}', is not connected"
        yield Problem(message, path)


def _connected(config: ModelConfig, writers: Mapping[str, EnsembleStep | None]) -> set[str]:
    """The tensors that the inputs lead to."""
    connected = {each.name for each in config.input}
    growing = True
    while growing:
        growing = False
        for tensor, step in writers.items():
            if tensor not in connected and step is not None and connected.issuperset(step.input_map.values()):
                connected.add(tensor)
                growing = True
    return connected


def _unconnected(tensor: str, writers: Mapping[str, EnsembleStep | None], connected: set[str]) -> str:
    """The first tensor on the way back from `tensor` that no step writes, or that waits for itself."""
    seen: set[str] = set()
    while tensor not in seen:
        seen.add(tensor)
        step = writers.get(tensor)
        if step is None:
            break
        tensor = next(read for read in step.input_map.values() if read not in connected)
    return tensor


def _step_location(scheduling: ModelEnsembling, writer: EnsembleStep, tensor: str) -> str:
    path = element("ensemble_scheduling.step", scheduling.step.index(writer))
    return next(entry(f"{path}.output_map", name) for name, written in writer.output_map.items() if written == tensor)
