"""docs/sequences.md: its configuration and its code do what it says."""

import asyncio
import re
from pathlib import Path
from typing import Any

import numpy as np

import naiad_scheduler_sequence
from naiad import Server
from naiad.backend import Answer, Batch
from naiad.types import Request
from naiad_config.text import parse_text
from naiad_config.validation import problems
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend

_PAGE = Path(__file__).parents[2] / "docs" / "sequences.md"
STEPS = """
max_batch_size: 4
input { name: "STEPS" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "TOOK" data_type: TYPE_INT32 dims: [ 1 ] }
sequence_batching {
  iterative_sequence: true
  state { input_name: "DONE_IN" output_name: "DONE_OUT" data_type: TYPE_INT32 dims: [ 1 ] }
}
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", _PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def defined(name: str) -> Any:
    """What the block of code that has it defines under that name."""
    space: dict[str, Any] = {}
    exec(next(block for block in blocks("python") if f"class {name}" in block), space)
    return space[name]


def test_the_configuration_of_the_page_is_valid() -> None:
    (text,) = (block for block in blocks("pbtxt") if "sequence_batching" in block)

    assert not list(problems(parse_text(f'name: "m" backend: "b" max_batch_size: 8 {text}')))


def test_the_accumulator_of_the_page_forgets_what_is_over() -> None:
    accumulator = defined("Accumulator")()
    accumulator.sums = {7: 3, 8: 4}

    accumulator.sequence_ended(7, "idle")

    assert accumulator.sums == {8: 4}


async def test_the_model_of_the_page_that_works_in_steps_takes_as_many_as_it_is_asked_for(tmp_path: Path) -> None:
    model = defined("Steps")()

    def answer(batch: Batch) -> Answer:
        return model.execute(batch)

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m", STEPS)

    async def ask(server: Server, steps: int) -> int:
        tensor = Tensor.of("STEPS", np.array([[steps]], dtype=np.int32))
        response = await server.infer(Request("m", {"STEPS": tensor}))
        return int(response.outputs["TOOK"].array[0, 0])

    async with Server(model_repository=[tmp_path], plugins=(backend, naiad_scheduler_sequence)) as server:
        outcomes = await asyncio.gather(*(ask(server, steps) for steps in (3, 1, 2)))

    assert outcomes == [3, 1, 2]
