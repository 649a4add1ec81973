"""The completion scripts, each read by its shell where that is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from naiad_cli.main import main


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    path = tmp_path / f"naiad.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


@pytest.mark.parametrize("script", ["bash", "zsh", "fish"], indirect=True)
def test_the_shell_can_read_its_script(script: Path) -> None:
    ran = subprocess.run([script.suffix[1:], "-n", script], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "model-control-mode" in script.read_text()


@pytest.mark.parametrize("script", ["bash"], indirect=True)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("naiad ser", "serve"),
        ("naiad serve --model-control-mode = po", "poll"),
        ("naiad serve --exit-on-e", "--exit-on-error"),
        ("naiad help compl", "completion"),
        ("naiad completion ba", "bash"),  # and no file, since it takes none
        ("naiad serve ba", "bag"),
        ("naiad new model x --directory ba", "bag"),
        ("naiad completion fi", "fish"),
        ("naiad new mod", "model"),
        ("naiad new model --tri", "--triton"),
    ],
)
def test_bash_completes_commands_options_and_values(script: Path, words: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "bag").touch()
    line = f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))"
    program = f"source {script}; {line}; _naiad; echo ${{COMPREPLY[@]}}"

    ran = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)

    assert ran.stdout.split() == [expected]


@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish_completes_with_descriptions(script: Path) -> None:
    ran = subprocess.run(
        ["fish", "-c", f"source {script}; complete -C 'naiad serve --model-control-m'; complete -C 'naiad pl'"],
        capture_output=True,
        text=True,
        check=True,
    )

    first, second = ran.stdout.splitlines()
    assert first.startswith("--model-control-mode\t")
    assert second == "plugins\tlist what is installed and what it offers"


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["completion", "zhs"])

    assert exited.value.code == 2
    assert "did you mean 'zsh'?" in capsys.readouterr().err
