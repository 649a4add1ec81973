"""A server without model calls: `models_of(context)` refuses, and says what to install."""

from pathlib import Path

import pytest

from naiad.backend import ModelContext
from naiad.errors import UnsupportedError
from naiad_kit.calls import models_of
from naiad_testing.in_loop import request, running, write_model
from naiad_testing.steered import Steered, SteeredModel


async def test_calls_are_refused_with_what_to_install(tmp_path: Path) -> None:
    contexts: list[ModelContext] = []

    def load(context: ModelContext) -> SteeredModel:
        contexts.append(context)
        return SteeredModel(backend)

    backend = Steered(load=load)
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        models = models_of(contexts[0]).within([])
        for call in (
            lambda: models.infer(request("m", 1)),
            lambda: models.begin(request("m", 1)),
            lambda: models.stream(request("m", 1)),
            lambda: models.ready("m"),
            lambda: models.load("m"),
            lambda: models.unload("m"),
        ):
            with pytest.raises(UnsupportedError, match=r"cannot .*pip install 'naiad-model-calls'"):
                call()

        assert (await server.infer(request("m", 1))).outputs["OUTPUT"].array.tolist() == [1]
