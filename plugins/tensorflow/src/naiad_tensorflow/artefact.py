"""Models on disk, looked at: which tensors they take and give, and how a session gets them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from naiad.config import ModelConfig
from naiad.errors import InvalidArgumentError
from naiad.interface import Interface, ModelTensor
from naiad_tensorflow.datatypes import DATA_TYPES
from naiad_tensorflow.parameters import RunSettings
from naiad_tensorflow.runtime import runtime, told


@dataclass(frozen=True, slots=True)
class Tensors:
    """The names of tensors in the graph (`x:0`) by the names that clients know."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


class Artefact(Protocol):
    """A model on disk. `interface` and `tensors` are known without loading it."""

    interface: Interface
    tensors: Tensors

    def load(self, session: Any) -> None:
        """Put it into a session, whose graph is the current one. Raises InvalidArgumentError."""
        ...


class SavedModel:
    """A SavedModel of TensorFlow 1 or 2: the graph with a tag, called by a signature of it.

    Raises InvalidArgumentError when it cannot be read, or has no such tag or signature.
    """

    def __init__(self, path: Path, model: str, settings: RunSettings) -> None:
        from tensorflow.core.protobuf import saved_model_pb2

        self._path = path
        self._model = model
        self._tag = settings.tag
        read = saved_model_pb2.SavedModel()
        try:
            read.ParseFromString((path / "saved_model.pb").read_bytes())
        except Exception as error:
            raise InvalidArgumentError(
                f"failed to load model '{model}': '{path.name}/saved_model.pb' cannot be read: {error}"
            ) from error
        signature = _signature(read.meta_graphs, path, model, settings)
        inputs, outputs = sorted(signature.inputs.items()), sorted(signature.outputs.items())
        self.interface = Interface(
            tuple(_described(key, each.dtype, each.tensor_shape) for key, each in inputs),
            tuple(_described(key, each.dtype, each.tensor_shape) for key, each in outputs),
        )
        self.tensors = Tensors({key: each.name for key, each in inputs}, {key: each.name for key, each in outputs})

    def load(self, session: Any) -> None:
        """Load the graph and its variables."""
        try:
            runtime().compat.v1.saved_model.loader.load(session, [self._tag], str(self._path))
        except Exception as error:
            raise InvalidArgumentError(
                f"failed to load model '{self._model}' from '{self._path.name}': {told(error)}"
            ) from error


class FrozenGraph:
    """A GraphDef: inputs and outputs are nodes by their names.

    Raises InvalidArgumentError when it cannot be read.
    """

    def __init__(self, path: Path, config: ModelConfig) -> None:
        tensorflow = runtime()
        self._path = path
        self._model = config.name
        self._graph = tensorflow.compat.v1.GraphDef()
        graph = tensorflow.Graph()
        try:
            self._graph.ParseFromString(path.read_bytes())
            with graph.as_default():
                tensorflow.import_graph_def(self._graph, name="")
        except Exception as error:
            raise InvalidArgumentError(
                f"failed to load model '{config.name}': '{path.name}' is no graph that can be used: {told(error)}"
            ) from error
        nodes = {node.name: node for node in graph.get_operations() if node.outputs}
        taken = [node for node in nodes.values() if node.type in ("Placeholder", "PlaceholderV2")]
        wanted = [name for name in _output_names(config) if name.partition(":")[0] in nodes]
        self.interface = Interface(
            tuple(_of_graph(node.name, node.outputs[0]) for node in taken),
            tuple(_of_graph(name, graph.get_tensor_by_name(_full(name))) for name in wanted),
        )
        self.tensors = Tensors({node.name: _full(node.name) for node in taken}, {name: _full(name) for name in wanted})

    def load(self, session: Any) -> None:
        """Put the graph's nodes into the session's graph."""
        runtime().import_graph_def(self._graph, name="")


def _signature(graphs: Sequence[Any], path: Path, model: str, settings: RunSettings) -> Any:
    tags = [set(graph.meta_info_def.tags) for graph in graphs]
    found = next((graph for graph, each in zip(graphs, tags, strict=True) if each == {settings.tag}), None)
    if found is None:
        known = "; ".join(", ".join(sorted(each)) for each in tags)
        raise InvalidArgumentError(
            f"model '{model}': '{path.name}' has no graph with the tag '{settings.tag}', only with {known}; name one "
            "with the parameter TF_GRAPH_TAG"
        )
    signature = found.signature_def.get(settings.signature)
    if signature is None:
        known = ", ".join(sorted(key for key in found.signature_def if not key.startswith("__")))
        raise InvalidArgumentError(
            f"model '{model}': '{path.name}' has no signature '{settings.signature}', only {known}; name one with the "
            "parameter TF_SIGNATURE_DEF"
        )
    return signature


def _described(name: str, number: int, shape: Any) -> ModelTensor:
    kind = runtime().dtypes.as_dtype(number).name
    dims = () if shape.unknown_rank else tuple(dim.size for dim in shape.dim)
    return ModelTensor(name, kind, DATA_TYPES.get(kind), dims)


def _of_graph(name: str, tensor: Any) -> ModelTensor:
    kind = tensor.dtype.base_dtype.name
    dims = () if tensor.shape.rank is None else tuple(-1 if dim is None else dim for dim in tensor.shape.as_list())
    return ModelTensor(name, kind, DATA_TYPES.get(kind), dims)


def _output_names(config: ModelConfig) -> list[str]:
    states = config.sequence_batching.state if config.sequence_batching is not None else ()
    return list(dict.fromkeys([*(each.name for each in config.output), *(each.output_name for each in states)]))


def _full(name: str) -> str:
    return name if ":" in name else f"{name}:0"
