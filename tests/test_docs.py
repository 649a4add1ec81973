"""The documentation names everything that users can name, and names nothing that is not there."""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from naiad import PluginRegistry, hookspecs
from naiad_cli.extra_commands import extra_commands
from naiad_cli.main import COMMANDS, main
from naiad_cli.serve_options import every_option

ROOT = Path(__file__).parents[1]
PAGES = {path.name: path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
HOOKS = [getattr(hookspecs, name) for name in vars(hookspecs) if name.startswith("naiad_")]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
PUBLIC_MODULES: list[str] = SITE["extra"]["modules"]


def public_names(module: ModuleType) -> list[str]:
    """The names of `__all__`, else what the module itself defines without a leading underscore."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("__")]
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [name for name in own if not name.startswith("_")]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.__name__)
def test_every_hook_is_documented_with_its_arguments(hook: object) -> None:
    arguments = ", ".join(inspect.signature(hook).parameters)

    assert f"`{hook.__name__}({arguments})`" in PAGES["hooks.md"]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.__name__)
def test_every_hook_is_used_by_a_plugin_of_this_workspace(hook: object) -> None:
    registry = PluginRegistry.discover()
    kind = hook.__name__.removeprefix("naiad_").removesuffix("s" if hook.__name__ != "naiad_options" else "")
    kind = {"repositorie": "repository scheme"}.get(kind, kind.replace("_", " "))

    assert any(kind in report.kinds for report in registry.plugins)


def test_no_page_names_a_hook_that_is_not_there() -> None:
    report = {name for page in PAGES.values() for name in re.findall(r"`(naiad_[a-z_]+)\(", page)}

    assert report == {hook.__name__ for hook in HOOKS}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_is_documented(command: object) -> None:
    assert f"\n## naiad {command.name}\n" in PAGES["cli.md"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_argument_of_a_command_is_documented(command: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command.name, "--help"])
    names = set(re.findall(r"^  (?:-\w, )?--([a-z0-9-]+)", capsys.readouterr().out, re.MULTILINE)) - {"help"}

    missing = [name for name in names if not any(re.search(rf"`--{name}[`= ]", page) for page in PAGES.values())]

    assert missing == []


def test_no_page_names_a_command_that_is_not_there() -> None:
    report = {name for page in PAGES.values() for name in re.findall(r"[`/]naiad ([a-z]+)", page)}

    assert report <= {command.name for command in COMMANDS} | set(extra_commands([])) | {"help"}


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_every_public_name_is_documented(name: str) -> None:
    everything = "\n".join(PAGES.values())

    missing = [
        message
        for message in public_names(importlib.import_module(name))
        if not re.search(rf"\b{message}\b", everything)
    ]

    assert missing == []


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_between_pages_lead_somewhere(page: str) -> None:
    folder = ROOT if page == "README.md" else ROOT / "docs"
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", PAGES[page]) if "://" not in link]

    assert [link for link in links if not (folder / link).exists()] == []


def test_the_table_of_features_names_every_package_and_only_rooms_that_are_there() -> None:
    table = PAGES["design.md"].split("### Where each feature is")[1].split("\n#")[0]
    rooms = {
        room
        for row in re.findall(r"^\| [^|]+ \|([^|]+)\|", table, re.MULTILINE)
        for room in re.findall(r"`([\w.]+)`", row)
    }
    folders = [path for group in ("core", "plugins", "frontends") for path in ROOT.glob(f"{group}/*/src/*")]
    sources = {path.name: path for path in folders if (path / "__init__.py").exists()}

    assert {room.split(".")[0] for room in rooms} == set(sources) - {
        "triton_python_backend_utils",
        "c_python_backend_utils",
    }
    files = {room: sources[room.split(".")[0]].parent.joinpath(*room.split(".")) for room in rooms}
    assert [room for room, path in files.items() if not path.is_dir() and not path.with_suffix(".py").is_file()] == []


def test_make_targets_that_are_named_are_there() -> None:
    pages = "\n".join([*PAGES.values(), (ROOT / "CONTRIBUTING.md").read_text(), (ROOT / ".ci/run").read_text()])
    message = set(re.findall(r"(?:`|^|&& )make ([a-z-]+)", pages, re.MULTILINE))

    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert {"install", "serve", "test"} <= message <= targets


def test_options_in_commands_that_are_shown_are_there() -> None:
    blocks = "\n".join(
        block for page in PAGES.values() for block in re.findall(r"```[^\n]*\n(.*?)```", page, re.DOTALL)
    )
    commands = [line for line in blocks.splitlines() if "naiad serve" in line]
    report = {name for line in commands for name in re.findall(r"--([a-z0-9-]+)", line)}

    written = {"lines-port"}  # of the frontend that a reader of plugins.md writes
    assert report - written <= {option.name for option in every_option(PluginRegistry.discover())}
