"""A server with this plugin."""

import asyncio

import numpy as np
import torch

import naiad_torch
from naiad import Server
from naiad.types import Request, Tensor

from .test_modules import CONFIG, SCALE, TENSORS, given
from .written import ADD_SUB


def test_a_folder_with_a_model_file_is_served(workbench, models, tmp_path):
    workbench.script(models.AddSub(), ADD_SUB)
    (workbench.directory / "config.pbtxt").write_text(ADD_SUB)
    given = Tensor.of("a", np.full((1, 4), 3, np.float32)), Tensor.of("b", np.ones((1, 4), np.float32))

    async def main():
        async with Server(model_repository=[tmp_path], plugins=[naiad_torch]) as server:
            response = await server.infer(Request("m", {each.name: each for each in given}))
            return response.outputs["OUTPUT__1"].array.tolist(), server.statistics("m")[0].memory_usage

    values, usage = asyncio.run(main())

    assert values == [[2.0] * 4]
    assert [each.type for each in usage] == []


def test_a_module_in_python_is_served_with_its_weights(workbench, tmp_path):
    workbench.path("model.py").write_text(SCALE)
    torch.save({"factor": torch.tensor(5.0)}, workbench.path("model.pt"))
    (workbench.directory / "config.pbtxt").write_text(CONFIG + TENSORS)

    async def main():
        async with Server(model_repository=[tmp_path], plugins=[naiad_torch]) as server:
            response = await server.infer(Request("m", {"x": Tensor.of("x", given(3)["x"])}))
            return response.outputs["y"].array.tolist()

    assert asyncio.run(main()) == [[15.0, 15.0]]
