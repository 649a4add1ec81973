"""The scheduler that docs/schedulers.md writes works as it is printed, and so do the tests that it shows."""

import shlex
from pathlib import Path
from types import ModuleType

import pytest

from naiad import PluginRegistry
from naiad_cli.main import main

from .reading import assert_printed, blocks_of

PAGE = (Path(__file__).parents[1] / "docs" / "schedulers.md").read_text()
BLOCKS = blocks_of("schedulers.md")
CODE = [block.text for block in BLOCKS if block.language == "python"]


@pytest.fixture
def page() -> ModuleType:
    """A module with all the code of the page."""
    module = ModuleType("smallest_first")
    for block in CODE:
        exec(block, vars(module))
    return module


def test_the_scheduler_of_the_page_is_found_by_its_name(page: ModuleType) -> None:
    factory = PluginRegistry.of([page]).scheduler("smallest-first")

    assert isinstance(factory, page.SmallestFirstScheduling)


def test_the_tests_of_the_page_pass(page: ModuleType) -> None:
    tests = [name for name in vars(page) if name.startswith("test_")]

    for name in tests:
        getattr(page, name)()

    assert len(tests) == PAGE.count("\ndef test_")


def test_the_simulation_of_the_page_prints_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    index, config = next((index, block) for index, block in enumerate(BLOCKS) if block.path == "config.pbtxt")
    command, shown = BLOCKS[index + 1 : index + 3]
    (tmp_path / "config.pbtxt").write_text(config.text)
    monkeypatch.chdir(tmp_path)

    assert main(shlex.split(command.text)[1:]) == 0

    assert_printed(capsys.readouterr().out, shown.text)
