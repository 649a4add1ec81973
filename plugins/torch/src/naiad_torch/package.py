"""Models as `model.pt2`: packages compiled by AOTInductor, and exported programs that are run as they are."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from naiad.errors import InternalError, InvalidArgumentError
from naiad_torch.callspec import CallSpec, read_call_spec
from naiad_torch.program import Program
from naiad_torch.runtime import runtime, told

_COMPILED = "/data/aotinductor/"
_EXPORTED = "/models/model.json"


def open_package(path: Path, model: str) -> "CompiledArtefact | ExportedArtefact":
    """The package in that file. Raises InvalidArgumentError when it is none, InternalError when PyTorch refuses it."""
    try:
        with zipfile.ZipFile(path) as file:
            entries = file.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise InvalidArgumentError(
            f"model '{model}': '{path.name}' is no package of PyTorch ({error}); torch.export.save or "
            "torch._inductor.aoti_compile_and_package write one"
        ) from error
    if any(_COMPILED in f"/{entry}" for entry in entries):
        return CompiledArtefact(path, model)
    if any(f"/{entry}".endswith(_EXPORTED) for entry in entries):
        return ExportedArtefact(path, model)
    raise InvalidArgumentError(
        f"model '{model}': '{path.name}' holds neither an exported program nor a compiled one; it has "
        f"{', '.join(sorted(entries)[:5])}"
    )


class _Described:
    """The names of what a package takes and gives."""

    keys = False

    def __init__(
        self, spec: CallSpec, input_names: Sequence[Sequence[str]], output_names: Sequence[Sequence[str]]
    ) -> None:
        self.inputs: Mapping[str, int] = _by_name(input_names)
        self.outputs: Mapping[str, int] = _by_name(output_names)
        self.input_count: int | None = spec.input_count
        self.required = spec.input_count
        self.output_count: int | None = spec.result.size


class CompiledArtefact(_Described):
    """What AOTInductor has compiled, for one kind of device."""

    def __init__(self, path: Path, model: str) -> None:
        self._path = path
        self._model = model
        package = self._load(-1)
        spec = _spec_of(package.loader.get_call_spec(), path, model)
        self._kind: str = package.get_metadata().get("AOTI_DEVICE_KEY", "cpu")
        super().__init__(spec, spec.input_names(), spec.output_names())
        self._spec = spec

    def open(self, device: str) -> Program:
        """Load it there. Raises InvalidArgumentError when it was compiled for another kind of device."""
        kind, _, index = device.partition(":")
        if kind and kind != self._kind:
            raise InvalidArgumentError(
                f"model '{self._model}': '{self._path.name}' was compiled for {self._kind}, and its instance is on "
                f"{kind}; compile it on a device of that kind, or change the kind of the instance_group"
            )
        return _CompiledProgram(self._load(int(index) if index else -1), self._spec)

    def _load(self, device: int) -> Any:
        from torch._inductor import aoti_load_package

        try:
            return aoti_load_package(str(self._path), device_index=device)
        except Exception as error:
            raise InternalError(
                f"failed to load model '{self._model}' from '{self._path.name}': {told(error)}"
            ) from error


class _CompiledProgram:
    def __init__(self, package: Any, spec: CallSpec) -> None:
        self._package = package
        self._spec = spec

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        arguments, keywords = self._spec.call(feeds)
        return self._spec.results(self._package(*arguments, **keywords))

    def parameters(self) -> Sequence[Any]:
        return ()


class ExportedArtefact(_Described):
    """An exported program: what it takes and gives is all in the file, `program` has it."""

    def __init__(self, path: Path, model: str) -> None:
        torch = runtime()
        try:
            self.program = torch.export.load(str(path))
        except Exception as error:
            raise InternalError(f"failed to load model '{model}' from '{path.name}': {told(error)}") from error
        from torch.utils._pytree import treespec_dumps

        call = self.program.call_spec
        spec = _spec_of([treespec_dumps(call.in_spec), treespec_dumps(call.out_spec)], path, model)
        arguments = self.program.graph_signature.user_inputs
        known = spec.input_names()
        names = [(*each, str(name)) for each, name in zip(known, arguments, strict=True)]
        super().__init__(spec, names, spec.output_names())
        self.argument_names = tuple(map(str, arguments))
        self._spec = spec

    def open(self, device: str) -> Program:
        """Put a copy of it there."""
        program = self.program
        if device and device != "cpu":
            from torch.export.passes import move_to_device_pass

            program = move_to_device_pass(program, device)
        return _ExportedProgram(program.module(), self._spec)


class _ExportedProgram:
    def __init__(self, module: Any, spec: CallSpec) -> None:
        self._module = module
        self._spec = spec

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        arguments, keywords = self._spec.call(feeds)
        return self._spec.results(self._module(*arguments, **keywords))

    def parameters(self) -> Sequence[Any]:
        return [*self._module.parameters(), *self._module.buffers()]


def _spec_of(texts: Sequence[str], path: Path, model: str) -> CallSpec:
    try:
        return read_call_spec(*texts)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"model '{model}': '{path.name}' cannot be served: {error}") from error


def _by_name(names: Sequence[Sequence[str]]) -> dict[str, int]:
    return {name: place for place, each in enumerate(names) for name in each}
