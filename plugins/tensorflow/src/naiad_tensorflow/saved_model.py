"""SavedModels of TensorFlow 1 and 2 (`tensorflow/core/protobuf/saved_model.proto`)."""

from pathlib import Path
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_kit.backends.interface import Interface, ModelTensor
from naiad_tensorflow.artefact import Tensors
from naiad_tensorflow.datatypes import DATA_TYPES
from naiad_tensorflow.parameters import RunSettings
from naiad_tensorflow.runtime import describe_error, runtime
from naiad_tensorflow.weights import weight_bytes

_BINARY, _TEXT = "saved_model.pb", "saved_model.pbtxt"


class SavedModel:
    """The graph with certain tags, called by one of its signatures.

    Raises InvalidArgumentError when it cannot be read, or has no such graph or signature.
    """

    def __init__(self, path: Path, model: str, settings: RunSettings) -> None:
        self._path = path
        self._model = model
        self._tags = settings.tags
        graph = _tagged(_read(path, model), path, model, settings)
        signature = _signature(graph, path, model, settings)
        inputs, outputs = sorted(signature.inputs.items()), sorted(signature.outputs.items())
        self.interface = Interface(
            tuple(_described(key, each) for key, each in inputs), tuple(_described(key, each) for key, each in outputs)
        )
        self.tensors = Tensors({key: each.name for key, each in inputs}, {key: each.name for key, each in outputs})
        self.weight_bytes = weight_bytes(graph.graph_def)

    def load(self, session: Any) -> None:
        """Load the graph and its variables, and run what it runs by itself at first: tables are filled so."""
        try:
            runtime().compat.v1.saved_model.loader.load(session, list(self._tags), str(self._path))
        except Exception as error:
            raise InvalidArgumentError(
                f"failed to load model '{self._model}' from '{self._path.name}': {describe_error(error)}"
            ) from error


def _read(path: Path, model: str) -> Any:
    from google.protobuf import text_format
    from tensorflow.core.protobuf import saved_model_pb2

    read = saved_model_pb2.SavedModel()
    file = path / _BINARY if (path / _BINARY).exists() or not (path / _TEXT).exists() else path / _TEXT
    try:
        if file.name == _TEXT:
            text_format.Parse(file.read_text(encoding="utf-8"), read)
        else:
            read.ParseFromString(file.read_bytes())
    except Exception as error:
        raise InvalidArgumentError(
            f"failed to load model '{model}': '{path.name}/{file.name}' cannot be read: {error}"
        ) from error
    return read


def _tagged(read: Any, path: Path, model: str, settings: RunSettings) -> Any:
    tags = [set(graph.meta_info_def.tags) for graph in read.meta_graphs]
    requested_tags = set(settings.tags)
    meta_graph = next(
        (graph for graph, each in zip(read.meta_graphs, tags, strict=True) if each == requested_tags), None
    )
    if meta_graph is None:
        known = "; ".join(",".join(sorted(each)) for each in tags)
        raise InvalidArgumentError(
            f"model '{model}': '{path.name}' has no graph with the tag '{','.join(settings.tags)}', only with {known}; "
            "name one with the parameter TF_GRAPH_TAG"
        )
    return meta_graph


def _signature(graph: Any, path: Path, model: str, settings: RunSettings) -> Any:
    signature = graph.signature_def.get(settings.signature)
    if signature is None:
        known = ", ".join(sorted(key for key in graph.signature_def if not key.startswith("__")))
        raise InvalidArgumentError(
            f"model '{model}': '{path.name}' has no signature '{settings.signature}', only {known or 'none at all'}; "
            "name one with the parameter TF_SIGNATURE_DEF, or export the model with signatures"
        )
    return signature


def _described(name: str, tensor: Any) -> ModelTensor:
    """A tensor as a `TensorInfo` describes it; one of several parts, such as a sparse one, has no datatype."""
    kind = runtime().dtypes.as_dtype(tensor.dtype).name
    unranked = tensor.tensor_shape.unknown_rank
    dims = () if unranked else tuple(dim.size for dim in tensor.tensor_shape.dim)
    parts = tensor.WhichOneof("encoding")
    if parts != "name":
        hint = "export the model with dense tensors, or with the parts of this one as tensors of their own"
        return ModelTensor(name, f"{kind} ({parts})", None, dims, hint=hint)
    return ModelTensor(name, kind, DATA_TYPES.get(kind), dims, unranked=unranked)
