"""AOTInductor packages: models compiled for one kind of device."""

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from ctypes import CDLL
from pathlib import Path
from typing import Any

from naiad.backend import MemoryUsage
from naiad.errors import InternalError, InvalidArgumentError, UnsupportedError
from naiad_torch.callspec import CallSpec, spec_of
from naiad_torch.described import UNLIMITED, Described, Size, most_rows
from naiad_torch.generated import read_arguments, read_call_texts, reordered_argument, weight_bytes
from naiad_torch.program import Packaged, Program, Weight
from naiad_torch.runtime import describe_error, runtime
from naiad_torch.unlocked import TESTED_VERSIONS, is_tested, library_in, unlocked


class CompiledArtefact(Packaged):
    """What AOTInductor has compiled. `source` is the C++ beside it in the package, "" without any, `metadata` its JSON.

    PyTorch's own loader runs it; with `releases_lock` on the CPU, the C interface of its library does where that is
    known. The package records the inputs; the outputs are found by a run over zeros, when they are needed. The
    loader's own parts are used with the tested versions of PyTorch. With any other, the source has the call
    specification, and the package is called with its arguments, which takes 38 µs more.
    """

    def __init__(self, path: Path, model: str, source: str, metadata: str, releases_lock: bool) -> None:
        self.path = path
        self._model = model
        self._releases_lock = releases_lock
        self._kind = self._checked_kind(metadata)
        self._first = package = self._load(-1)
        self._tested = is_tested()
        inputs, outputs = package.loader.get_call_spec() if self._tested else self._call_texts(source)
        self._spec = spec = spec_of(inputs, outputs, path.name, model)
        super().__init__(spec, spec.input_names(), spec.output_names())
        self._weight_bytes = weight_bytes(source)
        self.takes = read_arguments(source, spec.input_count)
        unknown = next((each.name for each in self.takes if "" in each.sizes), "")
        if unknown:
            raise UnsupportedError(
                f"model '{model}': '{path.name}' has a size of {unknown} that is no sum, difference or product "
                "of other sizes, so it cannot be checked before compiled code reads memory by it; export the model "
                "with a size of its own there"
            )
        if reordered := reordered_argument(source):
            raise UnsupportedError(
                f"model '{model}': '{path.name}' was compiled for {reordered} in another order of memory than C's, and "
                "would read the inputs of requests in the wrong order; export the model with contiguous inputs"
            )

    @functools.cached_property
    def gives(self) -> Sequence[Described]:
        """Its results, of which the sizes vary that differ between two runs; () when it cannot be run."""
        sizes = [size for each in self.takes for size in each.sizes]
        if not sizes or not all(isinstance(size, int) or size.isidentifier() for size in sizes):
            return ()
        program = self.open("" if self._kind == "cpu" else f"{self._kind}:0")
        most = most_rows(self.takes)
        try:
            few, many = (self._run_over_zeros(program, sizes) for sizes in _two_choices(self.takes))
        except Exception:  # noqa: BLE001 - a model that fails on zeros has no sizes to report
            return ()
        pairs = enumerate(zip(few, many, strict=True))
        return tuple(_seen(f"OUTPUT__{index}", one, other, most) for index, (one, other) in pairs)

    def open(self, device: str) -> Program:
        """Load it there. Raises InvalidArgumentError when it was compiled for another kind of device.

        A package for a GPU reads its inputs there, so it cannot be on a device of its own choice.
        """
        kind, _, index = device.partition(":")
        if not kind and self._kind != "cpu":
            raise InvalidArgumentError(
                f"model '{self._model}': '{self.path.name}' was compiled for {self._kind}, and an instance of "
                "KIND_MODEL gets its inputs in host memory, which it cannot read; use KIND_GPU"
            )
        if kind and kind != self._kind:
            raise InvalidArgumentError(
                f"model '{self._model}': '{self.path.name}' was compiled for {self._kind}, and its instance is on "
                f"{kind}; compile it on a device of that kind, or change the kind of the instance_group"
            )
        placement = ("CPU", 0) if self._kind == "cpu" else ("GPU", int(index or 0))
        first, self._first = self._first, None
        usage = MemoryUsage(*placement, self._weight_bytes)
        model = unlocked(self._library)
        if model is not None:
            return _CompiledProgram(model.run, usage)
        package = first if first is not None and not index else self._load(int(index) if index else -1)
        run = package.loader.boxed_run if self._tested else functools.partial(_call, package, self._spec)
        return _CompiledProgram(run, usage)

    def _call_texts(self, source: str) -> tuple[str, str]:
        texts = read_call_texts(source)
        if texts is None:
            raise UnsupportedError(
                f"model '{self._model}': '{self.path.name}' has no C++ source with its call specification, which "
                f"PyTorch {runtime().__version__} needs; compile it anew, or install torch {', '.join(TESTED_VERSIONS)}"
            )
        return texts

    @functools.cached_property
    def _library(self) -> CDLL | None:
        """What runs without the interpreter's lock, taken out of the package once for all instances."""
        return library_in(self.path) if self._releases_lock and self._kind == "cpu" else None

    def _checked_kind(self, metadata: str) -> str:
        """The kind of device that it was compiled for. Raises UnsupportedError when this machine has none."""
        try:
            kind: str = json.loads(metadata)["AOTI_DEVICE_KEY"]
        except (ValueError, KeyError, TypeError):
            return "cpu"  # an older package, or a broken one, which loading reports
        if kind == "cuda" and not runtime().cuda.is_available():
            raise UnsupportedError(
                f"model '{self._model}': '{self.path.name}' was compiled for cuda, and this PyTorch "
                f"({runtime().__version__}) finds no GPU; install a build of torch for CUDA and the driver of the GPU, "
                "or compile the model for cpu"
            )
        return kind

    def _load(self, device: int) -> Any:
        from torch._inductor import aoti_load_package

        try:
            return aoti_load_package(str(self.path), device_index=device)
        except Exception as error:
            raise InternalError(
                f"failed to load model '{self._model}' from '{self.path.name}': {describe_error(error)}"
            ) from error

    def _run_over_zeros(self, program: Program, sizes: dict[str, int]) -> Sequence[Any]:
        torch = runtime()
        device = self._kind if self._kind == "cpu" else f"{self._kind}:0"
        feeds = [
            torch.zeros(
                [sizes[size] if isinstance(size, str) else size for size in each.sizes],
                dtype=getattr(torch, each.type),
                device=device,
            )
            for each in self.takes
        ]
        with torch.inference_mode():
            return program.run(feeds)


class _CompiledProgram:
    """A package, called with the leaves of its call spec; the tree of arguments around them would take 38 µs more."""

    def __init__(self, run: Callable[[list[Any]], Sequence[Any]], usage: MemoryUsage) -> None:
        self._run = run
        self.in_place = False
        self._usage = usage

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        return self._run([feed.contiguous() for feed in feeds])  # as it was compiled for

    def weights(self) -> Iterator[Weight]:
        if self._usage.byte_size:
            yield id(self), self._usage


def _call(package: Any, spec: CallSpec, feeds: Sequence[Any]) -> Sequence[Any]:
    arguments, keywords = spec.call(feeds)
    return spec.results(package(*arguments, **keywords))


def _two_choices(tensors: Sequence[Described]) -> tuple[dict[str, int], dict[str, int]]:
    """Two sizes for each variable dim, one for each of two runs. In one run most dims have different sizes."""
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for tensor in tensors:
        for size, smallest, largest in zip(tensor.sizes, tensor.least, tensor.most, strict=True):
            if isinstance(size, str):
                least[size] = max(smallest, least.get(size, 2))
                most[size] = min(largest, most.get(size, UNLIMITED))
    few: dict[str, int] = {}
    many: dict[str, int] = {}
    for index, name in enumerate(sorted(least)):
        many[name] = min(least[name] + 1 + 2 * index, most[name])
        few[name] = min(least[name] + index, max(many[name] - 1, least[name]))
    return few, many


def _seen(name: str, few: Any, many: Any, most: int) -> Described:
    """A result that was seen twice."""
    sizes: tuple[Size, ...] = tuple(
        one if one == other else "" for one, other in zip(few.shape, many.shape, strict=True)
    )
    return Described(name, str(few.dtype).removeprefix("torch."), sizes, most=(most,))
