"""The activation of conda environments."""

from pathlib import Path

import pytest

from naiad.errors import InvalidArgumentError
from naiad_process_workers.activation import activated

VARIABLES = {"PATH": "/usr/bin:/bin", "OLD": "old"}


def script(root: Path, name: str, text: str) -> None:
    folder = root / "etc" / "conda" / "activate.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_without_scripts_the_environment_is_named(tmp_path: Path) -> None:
    conda = {"CONDA_PREFIX": str(tmp_path), "CONDA_DEFAULT_ENV": str(tmp_path), "CONDA_SHLVL": "1"}

    assert activated(tmp_path, VARIABLES) == {**VARIABLES, **conda}


def test_scripts_change_variables_in_the_order_of_their_names(tmp_path: Path) -> None:
    root = tmp_path / "with a space"
    script(root, "2.sh", 'export SECOND="$FIRST and more"; unset OLD')
    script(root, "1.sh", "echo printed; export FIRST='two\nlines of $CONDA_PREFIX'")
    script(root, "1.fish", "not of this shell")

    variables = activated(root, VARIABLES)

    assert variables["SECOND"] == "two\nlines of $CONDA_PREFIX and more"
    assert "OLD" not in variables
    assert variables["PATH"] == VARIABLES["PATH"]


@pytest.mark.parametrize(("text", "said"), [("echo no licence; exit 3", "last:\nno licence"), ("exit 3", "nothing")])
def test_scripts_that_fail_are_refused_with_what_they_print(tmp_path: Path, text: str, said: str) -> None:
    script(tmp_path, "package.sh", text)

    with pytest.raises(InvalidArgumentError, match=rf"activate\.d ended with exit code 3 and said {said}"):
        activated(tmp_path, VARIABLES)
