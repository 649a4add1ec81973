"""Frozen graphs: a `GraphDef` file whose variables are constants."""

from pathlib import Path
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_config import ModelConfig
from naiad_kit.backends.interface import Interface, ModelTensor, wanted_outputs
from naiad_tensorflow.artefact import Tensors
from naiad_tensorflow.datatypes import DATA_TYPES
from naiad_tensorflow.runtime import describe_error, runtime
from naiad_tensorflow.weights import weight_bytes

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
_WITH_DEFAULT = "PlaceholderWithDefault"


class FrozenGraph:
    """Inputs and outputs are nodes by their names; a placeholder with a default is an optional input.

    Raises InvalidArgumentError when the graph cannot be read.
    """

    def __init__(self, path: Path, config: ModelConfig) -> None:
        self._path = path
        self._model = config.name
        graph = runtime().Graph()
        read = self._read()
        with graph.as_default():
            self._import(read)
        nodes = {node.name: node for node in graph.get_operations() if node.outputs}
        taken = [node for node in nodes.values() if node.type in (*_PLACEHOLDERS, _WITH_DEFAULT)]
        output_names = [name for name in wanted_outputs(config) if name.partition(":")[0] in nodes]
        node_outputs = {name: nodes[name.partition(":")[0]].outputs for name in output_names}
        tensors = {
            name: outputs[_output_index(name)]
            for name, outputs in node_outputs.items()
            if _output_index(name) < len(outputs)
        }
        self.interface = Interface(
            tuple(_described(node.name, node.outputs[0], node.type == _WITH_DEFAULT) for node in taken),
            tuple(_described(name, tensor) for name, tensor in tensors.items()),
        )
        self.tensors = Tensors(
            {node.name: node.outputs[0].name for node in taken}, {name: tensor.name for name, tensor in tensors.items()}
        )
        self.weight_bytes = weight_bytes(read)

    def load(self, session: Any) -> None:
        """Put the graph's nodes into the session's graph."""
        self._import(self._read())

    def _read(self) -> Any:
        """The graph, read anew each time rather than kept: it holds all weights."""
        graph = runtime().compat.v1.GraphDef()
        try:
            graph.ParseFromString(self._path.read_bytes())
        except Exception as error:
            raise self._unusable(error) from error
        return graph

    def _import(self, graph: Any) -> None:
        try:
            runtime().import_graph_def(graph, name="")
        except Exception as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"failed to load model '{self._model}': '{self._path.name}' is not a usable graph: {describe_error(error)}"
        )


def _output_index(name: str) -> int:
    """Which output of its node a name means: the first, or `x:1`."""
    number = name.partition(":")[2]
    return int(number) if number.isdecimal() else 0


def _described(name: str, tensor: Any, optional: bool = False) -> ModelTensor:
    kind = tensor.dtype.base_dtype.name
    unranked = tensor.shape.rank is None
    dims = () if unranked else tuple(-1 if dim is None else dim for dim in tensor.shape.as_list())
    return ModelTensor(name, kind, DATA_TYPES.get(kind), dims, optional, unranked=unranked)
