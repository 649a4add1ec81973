"""`naiad new`: what it writes works, and its tests pass."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from naiad_cli.main import main
from naiad_cli.new import OWN_NAMES


def run(*words: str, cwd: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python there and give everything it wrote."""
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment, text=True, capture_output=True, check=False
    )


def test_new_models_pass_their_tests(tmp_path, monkeypatch, capsys):
    """All in one run: the interpreter and the installed plugins take longer to start than the models to answer."""
    monkeypatch.chdir(tmp_path)
    models = [["add"], ["adds", "--triton"], ["my-model.v2"], ["2nd"]]

    statuses = [main(["new", "model", *words]) for words in models]

    assert statuses == [0] * len(models)
    assert f"naiad serve {Path('models')}" in capsys.readouterr().out
    done = run("-m", "pytest", "-q", "-W", "error", "models", cwd=tmp_path)
    assert "8 passed" in done.stdout, done.stdout


def test_a_new_backend_passes_its_tests_before_it_is_installed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    status = main(["new", "backend", "straight-line"])

    assert status == 0
    done = run("-m", "pytest", "-q", "-W", "error", cwd=tmp_path / "naiad-straight-line")
    assert "3 passed" in done.stdout, done.stdout


def test_a_new_backend_is_a_plugin_once_it_is_installed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["new", "backend", "straight-line"])
    install = ["pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", "site"]

    installed = run("-m", *install, "./naiad-straight-line", cwd=tmp_path)

    assert installed.returncode == 0, installed.stderr
    site = str(tmp_path / "site")
    listed = run("-m", "naiad_cli.main", "plugins", cwd=tmp_path, path=site).stdout
    assert any("straight-line" in line and "0.1.0" in line and "backend" in line for line in listed.splitlines())
    checked = run("-m", "naiad_cli.main", "check", "naiad-straight-line/tests/models", cwd=tmp_path, path=site)
    assert "line: ok" in checked.stdout, checked.stdout + checked.stderr


@pytest.mark.parametrize("kind", ["model", "backend"])
def test_nothing_is_written_over(tmp_path, capsys, kind):
    main(["new", kind, "twice", "--directory", str(tmp_path)])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    status = main(["new", kind, "twice", "--directory", str(tmp_path)])

    assert status == 1
    assert "is there already; choose another name" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("kind", "name"), [("model", "../up"), ("model", ""), ("backend", "Big"), ("backend", "a/b")])
def test_names_that_cannot_be_are_refused(tmp_path, capsys, kind, name):
    status = main(["new", kind, name, "--directory", str(tmp_path)])

    assert status == 2
    assert f"is not a name for a {kind}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "kind"), [("onnx", "distribution of Naiad"), ("python", "backend"), ("rate_limiter", "distribution")]
)
def test_a_backend_cannot_have_the_name_of_one_that_exists(tmp_path, capsys, name, kind):
    status = main(["new", "backend", name, "--directory", str(tmp_path)])

    assert status == 2
    assert f"'{name}' is the name of a {kind}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_backend_has_a_gitignore(tmp_path):
    main(["new", "backend", "abacus", "--directory", str(tmp_path)])

    assert "__pycache__/" in (tmp_path / "naiad-abacus" / ".gitignore").read_text()


def test_the_names_of_our_distributions_are_known():
    members = Path(__file__).parents[3].glob("*/*/pyproject.toml")
    names = {tomllib.loads(path.read_text())["project"]["name"] for path in members}

    assert {f"naiad-{name}" for name in OWN_NAMES} == names - {"naiad"}
