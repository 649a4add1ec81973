import gc
from collections.abc import Iterator

import pytest

from naiad_cli import main as command
from naiad_cli.collector import imports_uncollected


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generations of the collections since then."""
    generations: list[int] = []

    def note(phase: str, details: dict[str, int]) -> None:
        if phase == "start":
            generations.append(details["generation"])

    gc.callbacks.append(note)
    yield generations
    gc.callbacks.remove(note)


def test_nothing_is_collected_while_modules_are_imported_or_at_once_afterwards(collections: list[int]) -> None:
    with imports_uncollected():
        objects = [[] for _ in range(20_000)]
    [[] for _ in range(100)]

    assert collections == []
    assert gc.isenabled()
    assert not any(each is objects for each in gc.get_objects())  # no later collection visits it


def test_a_collector_that_was_off_stays_off() -> None:
    with imports_uncollected(), imports_uncollected():
        pass
    assert gc.isenabled()

    gc.disable()
    try:
        with imports_uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_collector_is_on_again_after_an_error() -> None:
    with pytest.raises(ImportError), imports_uncollected():
        raise ImportError("broken")

    assert gc.isenabled()


def test_a_command_and_its_plugins_are_imported_without_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[bool] = []
    parser = command.command_parser

    def observed(name: str) -> object:
        states.append(gc.isenabled())
        return parser(name)

    monkeypatch.setattr(command, "command_parser", observed)

    with pytest.raises(SystemExit):
        command.main(["check", "--help"])

    assert states == [False]
    assert gc.isenabled()
