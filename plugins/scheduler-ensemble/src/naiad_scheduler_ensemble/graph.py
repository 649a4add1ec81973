"""The graph of an ensemble: steps joined by tensor names, and the scopes of decoupled steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from naiad_config import EnsembleStep, ModelConfig, ModelInput, ModelOutput
from naiad_scheduler_ensemble.shapes import Bridge, bridge, chained, reshape

ONCE = -1
"""The scope of what happens once in a request: whatever no decoupled step leads to."""

REQUEST = -1
"""The producer of the ensemble's own inputs."""


@dataclass(frozen=True, slots=True)
class Read:
    """A step's input: its name in the model, the ensemble's tensor, how that gets there, and whether it can lack."""

    name: str
    tensor: str
    bridge: Bridge | None
    optional: bool


@dataclass(frozen=True, slots=True)
class Node:
    """A step: what it reads, what it writes (ensemble's tensors by the model's names), and how often it runs.

    `scope` is the decoupled step each of whose responses makes it run once, or `ONCE`. `opens` is the scope that its
    own tensors belong to: itself where its model is decoupled. `all_mapped` says that every output has a tensor.
    """

    index: int
    reads: tuple[Read, ...]
    writes: tuple[tuple[str, str], ...]
    scope: int
    opens: int
    all_mapped: bool

    @property
    def decoupled(self) -> bool:
        """Whether it may respond any number of times."""
        return self.opens == self.index


@dataclass(frozen=True, slots=True)
class Graph:
    """All steps, the producer and the scope of every tensor, and how each output gets to the client."""

    nodes: tuple[Node, ...]
    producers: Mapping[str, int]
    scopes: Mapping[str, int]
    outputs: Mapping[str, Bridge | None]

    def around(self, scope: int) -> list[int]:
        """The scope itself and those that lie around it, outwards; `ONCE` is the last."""
        scopes = [scope]
        while scopes[-1] != ONCE:
            scopes.append(self.nodes[scopes[-1]].scope)
        return scopes


def producers_of(config: ModelConfig) -> dict[str, int]:
    """The step that writes each tensor of an ensemble, `REQUEST` for its inputs."""
    producers = {model_input.name: REQUEST for model_input in config.input}
    for index, step in enumerate(steps_of(config)):
        producers.update(dict.fromkeys(step.output_map.values(), index))
    return producers


def scopes_of(config: ModelConfig, models: Sequence[ModelConfig]) -> list[frozenset[int]]:
    """The decoupled steps that the inputs of each step come from: with more than one, the step is invalid.

    Steps that wait for each other in a circle, or for a tensor that no step writes, have none.
    """
    producers, steps = producers_of(config), steps_of(config)
    ordered_scopes: dict[int, frozenset[int]] = {}
    growing = True
    while growing:
        growing = False
        for index, step in enumerate(steps):
            before = [producers.get(tensor, index) for tensor in step.input_map.values()]
            if index not in ordered_scopes and all(each == REQUEST or each in ordered_scopes for each in before):
                opened = [
                    frozenset((each,)) if is_decoupled(models[each]) else ordered_scopes[each]
                    for each in before
                    if each >= 0
                ]
                ordered_scopes[index] = frozenset().union(*opened)
                growing = True
    return [ordered_scopes.get(index, frozenset()) for index in range(len(steps))]


def graph_of(config: ModelConfig, models: Sequence[ModelConfig]) -> Graph:
    """The graph of a valid ensemble over the models of its steps."""
    producers = producers_of(config)
    batches = {
        tensor: (config if index == REQUEST else models[index]).max_batch_size > 0
        for tensor, index in producers.items()
    }
    reshaped = {each.name: reshape(tuple(each.dims), inner_dims(each)) for each in config.input}
    step_scopes = scopes_of(config, models)
    nodes = []
    for index, (step, model) in enumerate(zip(steps_of(config), models, strict=True)):
        scope = next(iter(step_scopes[index]), ONCE)
        nodes.append(
            Node(
                index=index,
                reads=tuple(
                    _read(name, tensor, model, batches[tensor], reshaped.get(tensor))
                    for name, tensor in step.input_map.items()
                ),
                writes=tuple(step.output_map.items()),
                scope=scope,
                opens=index if is_decoupled(model) else scope,
                all_mapped=len(step.output_map) == len(model.output),
            )
        )
    scopes = {tensor: ONCE if index == REQUEST else nodes[index].opens for tensor, index in producers.items()}
    takes_batches = config.max_batch_size > 0
    outputs = {
        model_output.name: chained(
            bridge(inner_dims(model_output), batches[model_output.name], takes_batches),
            reshape(inner_dims(model_output), tuple(model_output.dims)),
        )
        for model_output in config.output
    }
    return Graph(tuple(nodes), producers, scopes, outputs)


def steps_of(config: ModelConfig) -> Sequence[EnsembleStep]:
    """The steps as they are configured."""
    return config.ensemble_scheduling.step if config.ensemble_scheduling is not None else ()


def inner_dims(tensor: ModelInput | ModelOutput) -> tuple[int, ...]:
    """The dims of an ensemble's own input or output among its steps."""
    return tuple(tensor.dims if tensor.reshape is None else tensor.reshape.shape)


def is_decoupled(config: ModelConfig) -> bool:
    """Whether a model may answer with any number of responses."""
    return config.model_transaction_policy is not None and config.model_transaction_policy.decoupled


def _read(name: str, tensor: str, model: ModelConfig, in_batches: bool, reshaped: Bridge | None) -> Read:
    model_input = next(each for each in model.input if each.name == name)
    bridged = chained(reshaped, bridge(tuple(model_input.dims), in_batches, model.max_batch_size > 0))
    return Read(name, tensor, bridged, model_input.optional)
