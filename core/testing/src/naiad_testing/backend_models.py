"""Small models that a backend supplies to its conformance suite, and a folder in which one is loaded."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from naiad.backend import Backend
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_testing.workbench import Loaded, Workbench

DATATYPES = tuple(TENSOR_TYPES)
"""Every datatype of the protocol, by its name on the wire."""


@dataclass(frozen=True, slots=True)
class SuiteModel:
    """A model of the suite: `write(workbench)` puts its files into the version folder.

    `inputs` and `outputs` name its tensors in the order that the suite describes; `config` is what a configuration must
    say, in the text format, and stays empty where the model's file says everything.
    """

    write: Callable[[Workbench], object]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    config: str = ""


@dataclass(frozen=True, slots=True)
class BackendSuite:
    """A backend with its models; a model that is None leaves out the checks that need it.

    `plugin` is the module of the hooks, which may import none of the `frameworks`. `file` is the name of the model's
    file, and `parameter` one that the backend reads. `describes_tensors` says that a model's file has the inputs and
    outputs with their dims, `text_only` that strings must be UTF-8, `gpu_here` that the framework can compute on a GPU
    of this machine; `gpus` is the number that it seems to have. `served_with` are the plugins of the server, None for
    all that are installed, and () for no check behind a server.

    All tensors of the models have a batch dimension in front:

    - `add_sub`: FP32[4] A and B to A + B and A - B
    - `identity(datatype, dims)`: one tensor of that datatype, with `dims` as `3` or `-1`, to itself
    - `lookup`: the row of the table 10, 11, 12, 13 that an integer[1] names; another row fails when it is executed
    - `sequence`: FP32[1] x, start (a control, 1 at the start) and state to out and the next
      state, both x + state * (1 - start)
    - `ragged`: FP32[-1], ragged, to FP32[1], the sum of each request
    - `optional`: FP32[3] times FP32[1], which is 2 where it is missing; both without a batch dimension
    """

    backend: Backend
    plugin: str
    frameworks: tuple[str, ...]
    file: str
    add_sub: SuiteModel
    identity: Callable[[str, str], SuiteModel] | None = None
    lookup: SuiteModel | None = None
    sequence: SuiteModel | None = None
    ragged: SuiteModel | None = None
    optional: SuiteModel | None = None
    datatypes: Sequence[str] = DATATYPES
    lookup_datatype: str = "INT64"
    parameter: str = ""
    describes_tensors: bool = True
    text_only: bool = False
    gpu_here: bool = False
    gpus: int = 0
    served_with: Sequence[object] | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One check of a suite in a folder of its own."""

    suite: BackendSuite
    directory: Path

    @contextmanager
    def loaded(self, model: SuiteModel, more: str = "") -> Iterator[Loaded]:
        """The model with its instances, closed at the end; `more` is added to its configuration."""
        loaded = self.written(model).load(model.config + more)
        try:
            yield loaded
        finally:
            for instance in loaded.instances:
                instance.close()
            loaded.model.close()

    def written(self, model: SuiteModel) -> Workbench:
        """The folder with the model's files."""
        workbench = self.empty()
        model.write(workbench)
        return workbench

    def empty(self) -> Workbench:
        """A folder without a model."""
        return Workbench(self.directory / "m", self.suite.backend, self.suite.gpus)

    def served(self, model: SuiteModel, more: str = "") -> Path:
        """The folder with the model's files and its configuration, for a server."""
        directory = self.written(model).directory
        text = f'backend: "{self.suite.backend.traits.name}"\n{model.config}\n{more}\n'
        (directory / "config.pbtxt").write_text(text, encoding="utf-8")
        return directory
