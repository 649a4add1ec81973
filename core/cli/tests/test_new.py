"""`naiad new`: what it writes works, and its tests pass."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from naiad import PluginRegistry
from naiad_cli.main import main
from naiad_cli.new_plugin import KINDS, OWN_NAMES
from naiad_config.installing import install_command

PLUGINS = [kind.name for kind in KINDS]
PYTEST = ["-m", "pytest", "-q", "-W", "error", *(f"-pno:{name}" for name in ("hypothesispytest", "anyio", "xdist"))]
"""Without the plugins of this repository's environment, whose import takes a third of such a run."""


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
    done = run(*PYTEST, "models", cwd=tmp_path)
    assert "8 passed" in done.stdout, done.stdout


def test_a_new_model_says_what_it_and_its_test_need_and_is_not_installed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "naiad_custom", None)
    monkeypatch.setitem(sys.modules, "naiad_testing", None)

    main(["new", "model", "add"])

    printed = capsys.readouterr().out
    assert f"the model needs: {install_command('naiad-custom')}\n" in printed
    assert f"the test needs: {install_command('naiad-testing[pytest]')}\n" in printed


@pytest.mark.parametrize(("kind", "count"), [("backend", 3), ("scheduler", 3), ("frontend", 10), ("cache", 6)])
def test_a_new_plugin_passes_its_tests_before_it_is_installed(tmp_path, monkeypatch, kind, count):
    monkeypatch.chdir(tmp_path)

    status = main(["new", kind, "second_try"])

    assert status == 0
    done = run(*PYTEST, cwd=tmp_path / "naiad-second-try")
    assert f"{count} passed" in done.stdout, done.stdout


@pytest.mark.parametrize("kind", PLUGINS)
def test_a_new_plugin_is_formatted_and_names_what_it_and_its_tests_import(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    main(["new", kind, "second-try"])
    folder = tmp_path / "naiad-second-try"

    formatted = run("-m", "ruff", "format", "--check", "--line-length=120", str(folder), cwd=tmp_path)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]

    assert formatted.returncode == 0, formatted.stdout
    needs = named(project["dependencies"])
    assert imported(folder / "src") - {"naiad_second_try"} <= needs
    assert imported(folder / "tests") - {"naiad_second_try"} <= needs | named(project["optional-dependencies"]["test"])


def named(requirements: list[str]) -> set[str]:
    """The modules of these requirements."""
    return {re.split("[<>=]", requirement)[0].replace("-", "_") for requirement in requirements}


def imported(folder: Path) -> set[str]:
    """The modules beside the standard library that the files there import."""
    nodes = [node for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    names = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names


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


@pytest.mark.parametrize("kind", ["model", *PLUGINS])
def test_nothing_is_written_over(tmp_path, capsys, kind):
    main(["new", kind, "twice", "--directory", str(tmp_path)])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    status = main(["new", kind, "twice", "--directory", str(tmp_path)])

    assert status == 1
    assert "is there already; choose another name" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("model", "../up"),
        ("model", ""),
        ("backend", "Big"),
        ("scheduler", "a/b"),
        ("frontend", "1st"),
        ("cache", "a.b"),
    ],
)
def test_names_that_cannot_be_are_refused(tmp_path, capsys, kind, name):
    status = main(["new", kind, name, "--directory", str(tmp_path)])

    assert status == 2
    assert f"is not a name for a {kind}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "name", "owner"),
    [
        ("backend", "onnx", "distribution of Naiad"),
        ("backend", "python", "backend"),
        ("backend", "rate_limiter", "distribution"),
        ("scheduler", "default", "scheduler"),
        ("scheduler", "dynamic_batching", "scheduler"),
        ("frontend", "http", "distribution of Naiad"),
        ("cache", "redis", "cache"),
    ],
)
def test_a_plugin_cannot_have_the_name_of_one_that_exists(tmp_path, capsys, kind, name, owner):
    status = main(["new", kind, name, "--directory", str(tmp_path)])

    assert status == 2
    assert f"'{name}' is the name of a {owner}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_plugin_cannot_have_the_name_of_one_that_could_be_installed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("naiad_cli.new_plugin.PluginRegistry.discover", lambda: PluginRegistry.of([]))

    status = main(["new", "cache", "redis", "--directory", str(tmp_path)])

    assert status == 2
    assert "'redis' is the name of a cache of Naiad; choose another" in capsys.readouterr().err


def test_a_backend_has_a_gitignore(tmp_path):
    main(["new", "backend", "abacus", "--directory", str(tmp_path)])

    assert "__pycache__/" in (tmp_path / "naiad-abacus" / ".gitignore").read_text()


def test_the_names_of_our_distributions_are_known():
    members = Path(__file__).parents[3].glob("*/*/pyproject.toml")
    names = {tomllib.loads(path.read_text())["project"]["name"] for path in members}

    assert {f"naiad-{name}" for name in OWN_NAMES} == names - {"naiad"}
