"""Exported programs (`torch.export.save`): packages that describe all their tensors."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from naiad.errors import InternalError, InvalidArgumentError
from naiad_torch.callspec import CallSpec, spec_of
from naiad_torch.described import UNLIMITED, Described, Size
from naiad_torch.program import Packaged, Program, Weight, weights_in
from naiad_torch.runtime import describe_error, runtime


class ExportedArtefact(Packaged):
    """An exported program. Its arguments are called as in Python, its results `OUTPUT__<place>`.

    Raises InternalError when PyTorch refuses the file, InvalidArgumentError for an argument that is not a tensor.
    """

    def __init__(self, path: Path, model: str) -> None:
        torch = runtime()
        self.path = path
        try:
            self._program = torch.export.load(str(path))
        except Exception as error:
            raise InternalError(
                f"failed to load model '{model}' from '{path.name}': {describe_error(error)}"
            ) from error
        call = self._program.call_spec
        spec = spec_of(call.in_spec, call.out_spec, path.name, model)
        signature = self._program.graph_signature
        nodes = {node.name: node.meta.get("val") for node in self._program.graph.nodes}
        known = spec.input_names()
        for each, name in zip(known, signature.user_inputs, strict=True):
            if not hasattr(nodes.get(str(name)), "dtype"):
                raise InvalidArgumentError(
                    f"model '{model}': argument {each[0]} of '{path.name}' is {name}, which is not a tensor; export "
                    "the program without it"
                )
        names = [(*each, str(name)) for each, name in zip(known, signature.user_inputs, strict=True)]
        super().__init__(spec, names, spec.output_names())
        self.takes = [self._described(str(name), nodes[str(name)]) for name in signature.user_inputs]
        results = enumerate(signature.user_outputs)
        self.gives = [self._described(f"OUTPUT__{index}", nodes.get(str(name))) for index, name in results]
        self._spec = spec

    def open(self, device: str) -> Program:
        """Move it there. All programs on one device share the weights, and have buffers of their own if it writes."""
        if device and not self._is_on(device):
            from torch.export.passes import move_to_device_pass

            self._program = move_to_device_pass(self._program, device)
        return _ExportedProgram(self._program.module(), self._spec)

    def _is_on(self, device: str) -> bool:
        """Whether all tensors of its graph are there, where the last instance has moved it."""
        there = runtime().device(device)
        values = (node.meta.get("val") for node in self._program.graph.nodes)
        return all(value.device == there for value in values if hasattr(value, "device"))

    def _described(self, name: str, value: Any) -> Described:
        """The tensor traced as `value`; a result that is not a tensor is described by its type."""
        if not hasattr(value, "dtype"):
            return Described(name, type(value).__name__, ())
        sizes: tuple[Size, ...] = tuple(
            size if isinstance(size, int) else str(size) if str(size).isidentifier() else "" for size in value.shape
        )
        most = tuple(size if isinstance(size, int) else self._most(size) for size in value.shape)
        return Described(name, str(value.dtype).removeprefix("torch."), sizes, most=most)

    def _most(self, size: Any) -> int:
        """The largest value of a symbolic size."""
        for symbol, limits in self._program.range_constraints.items():
            if str(symbol) == str(size):
                upper = str(limits.upper)
                return int(upper) if upper.isdigit() else UNLIMITED
        return UNLIMITED


class _ExportedProgram:
    def __init__(self, module: Any, spec: CallSpec) -> None:
        self._module = module
        self._spec = spec
        self.in_place = any(_writes(node.target) for node in module.graph.nodes if node.op == "call_function")
        if self.in_place:
            _own_buffers(module)

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        arguments, keywords = self._spec.call(feeds)
        return self._spec.results(self._module(*arguments, **keywords))

    def weights(self) -> Iterator[Weight]:
        yield from weights_in(self._module)


def _own_buffers(module: Any) -> None:
    """Copy the buffers of a module, which are those of its program and so of its other instances too."""
    for name, buffer in list(module.named_buffers()):
        owner, _, last = name.rpartition(".")
        setattr(module.get_submodule(owner), last, buffer.clone())


def _writes(target: Any) -> bool:
    """Whether an operator writes to an argument, as its schema says; a function of Python has none."""
    schema = getattr(target, "_schema", None)
    return schema is not None and bool(schema.is_mutable)
