"""A backend may wish that requests are merged; without a scheduler that can, its models serve all the same."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from naiad.backend import ModelContext
from naiad_config import ModelConfig, ModelDynamicBatching
from naiad_testing.in_loop import FLOATS, rows, running, write_model
from naiad_testing.steered import Steered


def wishing(context: ModelContext) -> ModelConfig:
    return replace(context.config, dynamic_batching=ModelDynamicBatching())


async def test_a_wish_that_no_scheduler_grants_is_dropped_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_model(tmp_path, "m", f"max_batch_size: 4 {FLOATS}")
    caplog.set_level(logging.WARNING)

    async with running(tmp_path, Steered(complete=wishing)) as server:
        response = await server.infer(rows("m", 1, 2))
        config = server.model_config("m")

    assert response.outputs["OUTPUT"].shape == (2, 1)
    assert config.dynamic_batching is None
    assert "naiad-scheduler-dynamic: pip install" in caplog.text


async def test_batching_that_the_user_wrote_needs_its_scheduler(tmp_path: Path) -> None:
    write_model(tmp_path, "m", f"max_batch_size: 4 dynamic_batching {{ }} {FLOATS}")

    async with running(tmp_path, Steered()) as server:
        reasons = [entry.reason for entry in server.index()]

    assert "naiad-scheduler-dynamic" in reasons[0]
