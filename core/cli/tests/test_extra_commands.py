"""Commands that other distributions add by entry points."""

import sys
from pathlib import Path

import pytest

from naiad_cli.extra_commands import extra_commands
from naiad_cli.main import main
from naiad_config.installing import install_command

COMMAND = """
from naiad.errors import NotFoundError

def add_parser(subparsers):
    subparsers.add_parser("abacus", description="Counts.").set_defaults(run=run)

def run(arguments):
    print("counted", *arguments.words)
    return 3
"""


def install(folder: Path, distribution: str, *commands: str) -> None:
    described = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = "\n".join(f"{command} = {distribution.replace('-', '_')}" for command in commands)
    (described / "entry_points.txt").write_text(f"[naiad.commands]\n{lines}\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_command_of_another_distribution_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(folder, "abacus-command", "abacus")
    (folder / "abacus_command.py").write_text(COMMAND)

    status = main(["abacus"])

    assert (status, capsys.readouterr().out) == (3, "counted abacus\n")


def test_a_command_of_another_distribution_is_listed_without_being_imported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(folder, "unimported-command", "abacus")

    with pytest.raises(SystemExit):
        main(["--help"])

    message = capsys.readouterr().out
    assert "abacus" in message
    assert "unimported-command" in message
    assert "unimported_command" not in sys.modules


def test_a_command_that_cannot_be_imported_names_its_distribution(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(folder, "broken-command", "abacus")

    status = main(["abacus"])

    assert status == 1
    assert "naiad abacus: broken-command is broken: No module named 'broken_command'" in capsys.readouterr().err


def test_two_distributions_with_one_command_are_both_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(folder, "one-command", "abacus")
    install(folder, "other-command", "abacus")

    status = main(["abacus"])

    assert status == 1
    assert "both have the command 'abacus'; uninstall one" in capsys.readouterr().err


def test_a_distribution_cannot_have_a_command_of_naiad_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(folder, "one-command", "check")

    status = main(["abacus"])

    assert status == 1
    assert "naiad-cli and one-command both have the command 'check'" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "requirement"), [("ray", "naiad-ray[serve]"), ("tritonserver", "naiad-tritonserver")])
def test_a_known_command_that_is_not_installed_says_what_to_install(
    name: str, requirement: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("naiad_cli.main.extra_commands", lambda _taken: {})

    status = main([name])

    assert status == 1
    advice = install_command(requirement)
    assert f"naiad {name}: the command comes with another distribution: {advice}" in capsys.readouterr().err


def test_a_published_command_says_what_it_does(folder: Path) -> None:
    install(folder, "naiad-ray", "ray")
    install(folder, "naiad-abacus", "abacus")

    helps = {name: command.help for name, command in extra_commands(()).items()}

    assert helps["ray"] == "run servers on a cluster of Ray Serve"
    assert helps["abacus"] == "a command of naiad-abacus"
