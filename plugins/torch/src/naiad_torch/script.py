"""TorchScript models: `model.pt`."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from naiad.errors import InternalError, InvalidArgumentError
from naiad_torch.described import Described
from naiad_torch.program import Program, Weight, results_of, weights_in
from naiad_torch.runtime import describe_error, runtime

_PLAIN = ("Tensor", "Optional[Tensor]", "List[str]")
_DICT = "Dict[str, Tensor]"
_WRITING = frozenset(("prim::SetAttr", "prim::CallMethod", "prim::CallFunction", "prim::fork"))
"""Nodes that write to an attribute, or call what the inlined graph does not show, which may write to anything."""


class ScriptArtefact:
    """A TorchScript file. Raises InternalError when it cannot be loaded, InvalidArgumentError for other arguments."""

    outputs: Mapping[str, int] = {}
    output_count: int | None = None
    takes: Sequence[Described] = ()
    gives: Sequence[Described] = ()

    def __init__(self, path: Path, model: str, names: Sequence[str], optimized: bool = True) -> None:
        """`names` are all inputs that it gets: the keys, in that order, where it takes a dict."""
        self.path = path
        self._model = model
        self._optimized = optimized
        self._first = module = self._load("cpu")
        arguments = module.forward.schema.arguments[1:]
        types = [str(each.type) for each in arguments]
        self._check(types)
        self.keys = _DICT in types
        self._names = tuple(names)
        if self.keys:
            self.inputs: Mapping[str, int] = {name: index for index, name in enumerate(names)}
            self.input_count: int | None = len(names)
            self.required = len(names)
        else:
            self.inputs = {each.name: index for index, each in enumerate(arguments)}
            self.input_count = len(arguments)
            self.required = sum(not each.has_default_value() for each in arguments)

    def open(self, device: str) -> Program:
        """Load it on that device."""
        first, self._first = self._first, None
        module = first if first is not None and device == "cpu" else self._load(device)
        return _ScriptProgram(module, self._names if self.keys else None, self._optimized)

    def _load(self, device: str) -> Any:
        try:
            with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):  # it is still read
                return runtime().jit.load(str(self.path), map_location=device or None).eval()
        except Exception as error:
            raise InternalError(
                f"failed to load model '{self._model}': '{self.path.name}' is not TorchScript of torch.jit.save: if it "
                "is of torch.save, with a module or its state_dict, export the module with torch.export.export and "
                f"torch.export.save, as 'model.pt2', or script it ({describe_error(error)})"
            ) from error

    def _check(self, types: Sequence[str]) -> None:
        start = f"model '{self._model}', {self.path.name}: "
        if types.count(_DICT) > 1:
            raise InvalidArgumentError(
                f"{start}Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) "
                "is supported."
            )
        wrong = next((each for each in types if each not in (*_PLAIN, _DICT)), "")
        if wrong or (_DICT in types and len(types) > 1):
            raise InvalidArgumentError(
                f"{start}An input of type '{wrong or ', '.join(types)}' was detected in the model. Only a single input "
                "of type Dict(str, Tensor) or input(s) of type Tensor are supported."
            )


class _ScriptProgram:
    def __init__(self, module: Any, keys: Sequence[str] | None, optimized: bool) -> None:
        self._module = module
        self._keys = keys
        self._optimized = optimized
        self.in_place = _writes(module.inlined_graph)

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        if self._keys is not None:
            by_name = {key: feed for key, feed in zip(self._keys, feeds, strict=True) if feed is not None}
            feeds = (by_name,)
        if self._optimized:
            return results_of(self._module(*feeds))
        with runtime().jit.optimized_execution(False):
            return results_of(self._module(*feeds))

    def weights(self) -> Iterator[Weight]:
        yield from weights_in(self._module)


def _writes(graph: Any) -> bool:
    """Whether a graph may write to a tensor or an attribute; `!` in a schema marks an argument that is written to."""
    for node in graph.nodes():
        if node.kind() in _WRITING or "!" in node.schema() or any(map(_writes, node.blocks())):
            return True
    return False
