"""Pages that a reader follows from the top to the end, in an environment that has only what the page has installed."""

import ast
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from .environments import with_members
from .house.workspace import members
from .reading import DOCS, NOT_RUN, Block, Reader, blocks_of, packages_of

BLOCKS = [
    pytest.param(block, id=f"{path.name}-{index}")
    for path in sorted(DOCS.glob("*.md"))
    for index, block in enumerate(blocks_of(path.name))
    if block.language in ("sh", "python", "json", "toml")
]

BUILDING = ("pip", "hatchling")
"""What pip would fetch itself to build a distribution, if it had a network."""


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reader]:
    """A reader of the page that is the test's parameter, with what its `make install` or `pip install` brings."""
    installed = [member.distribution for member in members() if member.distribution != "naiad-ray"]
    naiad = with_members(tmp_path / "venv", installed, [*packages_of(request.param), *BUILDING])
    folder = tmp_path / "empty"
    folder.mkdir()
    reader = Reader(folder, naiad.parent)
    yield reader
    reader.stop()


@pytest.mark.parametrize("reader", ["tutorial.md"], indirect=True)
def test_the_tutorial_works_as_it_stands(reader: Reader) -> None:
    reader.follow("tutorial.md")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("reader", ["frameworks.md"], indirect=True)
def test_the_models_of_frameworks_work_as_they_stand(reader: Reader) -> None:
    reader.follow("frameworks.md")


@pytest.mark.parametrize(
    ("page", "command", "expected"),
    [
        ("explain.md", "naiad infer add_sub", "on add_sub_0"),
        ("http.md", "models/add_sub/infer", '"data":["3.000000:3","1.000000:2"]'),
    ],
)
def test_a_command_that_asks_the_examples_is_answered(page: str, command: str, expected: str, tmp_path: Path) -> None:
    (block,) = [block for block in blocks_of(page) if block.language == "sh" and command in block.text]
    reader = Reader(tmp_path, Path(sys.executable).parent)
    shutil.copytree(DOCS.parent / "examples/models/add_sub", tmp_path / "models" / "add_sub")
    try:
        reader.serve("naiad serve models --allow-explain")
        printed = reader.run(block)
    finally:
        reader.stop()

    assert expected in printed


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_a_page_has_no_mistake_in_its_language(block: Block) -> None:
    if block.language == "python":
        ast.parse(block.text)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language == "toml":
        tomllib.loads(block.text)
    else:
        done = subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_every_block_that_is_not_run_has_a_reason() -> None:
    notes = [block.note for path in DOCS.glob("*.md") for block in blocks_of(path.name) if "not-run" in block.note]

    assert notes
    assert [note for note in notes if not note.startswith(NOT_RUN) or len(note) < len(NOT_RUN) + 5] == []
