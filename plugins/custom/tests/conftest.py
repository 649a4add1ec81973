"""Model folders written by a test, and instances made from them without a server."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from naiad.backend import Batch, ModelContext, Placement
from naiad.types import Request
from naiad_config import ModelConfig, ModelInstanceGroup
from naiad_config.normalisation import normalise
from naiad_config.text import parse_text
from naiad_custom.backend import PythonBackend
from naiad_kit.calls import ModelCalls
from naiad_tensors.tensors import Tensor

from .several import Repository


class Folder:
    """The folder of a model that a test writes and loads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.backend = PythonBackend()
        self.placement = Placement("m_0", "CPU", 0, ModelInstanceGroup())
        self.instances: list[Any] = []
        self.models: list[Any] = []

    def write(self, code: str = "", config: str = "", files: Mapping[str, str] | None = None, version: int = 1) -> Path:
        folder = self.path / str(version)
        folder.mkdir(parents=True, exist_ok=True)
        if code:
            (folder / "model.py").write_text(dedent(code).lstrip(), encoding="utf-8")
        if config:
            (self.path / "config.pbtxt").write_text(config, encoding="utf-8")
        for name, text in (files or {}).items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(dedent(text), encoding="utf-8")
        return self.path

    def write_triton(self, body: str, before: str = "", more: str = "", definition: str = "def") -> None:
        """A TritonPythonModel whose execute has that body, for a model with input X and output Y, INT64[1]."""
        lines = [
            "import numpy as np",
            "import triton_python_backend_utils as pb_utils",
            before,
            "class TritonPythonModel:",
            f"    {definition} execute(self, requests):",
            *(f"        {line}" for line in body.splitlines()),
            f"    {more}",
        ]
        kind = "data_type: TYPE_INT64 dims: 1"
        self.write("\n".join(lines), f'input {{ name: "X" {kind} }} output {{ name: "Y" {kind} }}')

    def context(self, version: int = 1) -> ModelContext:
        file = self.path / "config.pbtxt"
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        config = parse_text(f'name: "{self.path.name}" backend: "python"\n{text}')
        return ModelContext(config, version, self.path, self.path / str(version))

    def completed(self) -> ModelConfig:
        return self.backend.complete(self.context())

    def model(self, version: int = 1, models: ModelCalls | None = None) -> Any:
        context = self.context(version)
        config = normalise(self.backend.complete(context), traits=self.backend.traits)
        loaded = replace(context, config=config, parts={} if models is None else {"model-calls": models})
        model = self.backend.load(loaded)
        self.models.append(model)
        return model

    def instance(self, version: int = 1, models: ModelCalls | None = None) -> Any:
        instance = self.model(version, models).instantiate(self.placement)
        self.instances.append(instance)
        return instance

    def close(self) -> None:
        for each in [*self.instances, *self.models]:
            with suppress(RuntimeError):  # a test of a failing close
                each.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    folder = Folder(tmp_path / "m")
    yield folder
    folder.close()


@pytest.fixture
def batch_of() -> Any:
    """Makes a batch from one dict of arrays for each request; `batching` False makes every size 1."""

    def make(*inputs: Mapping[str, Any], batching: bool = True, requested: Sequence[str] = ()) -> Batch:
        requests = []
        for number, each in enumerate(inputs):
            tensors = {name: Tensor.of(name, np.asarray(value)) for name, value in each.items()}
            requests.append(Request("m", tensors, id=str(number), requested=tuple(requested)))
        sizes = [next(iter(request.inputs.values())).shape[0] if batching else 1 for request in requests]
        return Batch(requests, sizes)

    return make


@pytest.fixture
def models(tmp_path: Path) -> Repository:
    """A repository with the models double and count."""
    models = Repository(tmp_path / "models")
    models.double()
    models.count()
    return models
