"""The command that a hint names, by how this Naiad was installed."""

import json
from collections.abc import Callable
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from naiad_config import installing

CORE = {"naiad", "naiad-config", "naiad-statistics", "naiad-tensors"}
"""What there is where only the kernel is installed."""

Install = Callable[..., Callable[[str], str]]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Call it with the URL that Naiad was installed from and the distributions that there are: the function to ask."""

    def install(url: str, names: set[str] = CORE) -> Callable[[str], str]:
        def distribution(name: str) -> SimpleNamespace:
            if name not in names:
                raise PackageNotFoundError(name)
            return SimpleNamespace(read_text=lambda file: json.dumps({"url": url}) if url else None)

        monkeypatch.setattr(metadata, "distribution", distribution)
        return installing.install_command.__wrapped__

    return install


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a few members."""
    projects = {
        "core/config": ("naiad-config", [], {}),
        "core/kernel": ("naiad", ["naiad-config"], {"server": ["naiad-http", "naiad[trace]"], "trace": ["rich"]}),
        "core/kit": ("naiad-kit", ["naiad", "numpy"], {}),
        "frontends/http": ("naiad-http", ["naiad>=0.1", "naiad-kit>=0.1,<0.2", "uvicorn"], {}),
        "plugins/onnx": ("naiad-onnx", ["naiad-kit", "numpy"], {"cpu": ["onnxruntime"]}),
        "plugins/ray": ("naiad-ray", ["naiad"], {"serve": ["naiad[server]", "ray"]}),
    }
    for folder, (name, dependencies, extras) in projects.items():
        (tmp_path / "a b" / folder).mkdir(parents=True)
        lines = ["[project]", f'name = "{name}"', f"dependencies = {json.dumps(dependencies)}"]
        lines += ["[project.optional-dependencies]", *(f"{extra} = {json.dumps(it)}" for extra, it in extras.items())]
        (tmp_path / "a b" / folder / "pyproject.toml").write_text("\n".join(lines))
    return tmp_path / "a b"


@pytest.mark.parametrize("url", ["", "https://example.org/naiad.zip", "file:///no/such/folder/core/config"])
def test_a_name_is_looked_up_in_the_index(installed: Install, url: str) -> None:
    assert installed(url)("naiad-onnx[cpu]") == "pip install 'naiad-onnx[cpu]'"


def test_a_name_is_looked_up_in_the_index_where_nothing_is_installed(installed: Install) -> None:
    assert installed("", set())("naiad-http") == "pip install 'naiad-http'"


def test_a_checkout_is_named_with_the_members_that_are_missing(installed: Install, checkout: Path) -> None:
    command = installed((checkout / "core/config").as_uri())

    kit = f"-e '{checkout}/core/kit'"
    http = f"-e '{checkout}/frontends/http'"
    assert command("naiad-onnx[cpu]") == f"pip install -e '{checkout}/plugins/onnx[cpu]' {kit}"
    assert command("naiad-http") == f"pip install {http} {kit}"
    assert command("naiad-ray[serve]") == f"pip install -e '{checkout}/plugins/ray[serve]' {http} {kit}"


def test_the_framework_of_an_installed_member_comes_by_its_name(installed: Install, checkout: Path) -> None:
    command = installed((checkout / "core/config").as_uri(), {*CORE, "naiad-kit", "naiad-onnx"})

    assert command("naiad-onnx[cpu]") == "pip install 'naiad-onnx[cpu]'"


def test_what_a_checkout_does_not_have_comes_by_its_name(installed: Install, checkout: Path) -> None:
    assert installed((checkout / "core/config").as_uri())("naiad-abacus") == "pip install 'naiad-abacus'"


def test_the_folder_of_a_wheel_is_searched(installed: Install, tmp_path: Path) -> None:
    wheel = tmp_path / "naiad_config-0.1.0-py3-none-any.whl"
    wheel.touch()

    command = installed(wheel.as_uri())

    assert command("naiad-http") == f"pip install --find-links '{tmp_path}' 'naiad-http'"
