"""All distributions of the workspace are alike; what differs is what they do."""

import ast
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from naiad_cli.extra_commands import PUBLISHED_COMMANDS

from .house.workspace import Member, Module, members

ROOT = Path(__file__).parents[1]
MEMBERS = [member.folder for member in members()]
BESIDE = {"plugins/custom": ("triton_python_backend_utils", "c_python_backend_utils")}
"""Packages that a member has beside its own: models for Triton import theirs by a name that is not ours to choose."""
PLUGINS = [member for member in MEMBERS if member.parent.name != "core"]
KERNEL = ROOT / "core" / "kernel"


def project(member: Path) -> dict:
    return tomllib.loads((member / "pyproject.toml").read_text())


def package(member: Path) -> Path:
    return member / "src" / project(member)["project"]["name"].replace("-", "_")


def named(member: Path) -> str:
    return member.relative_to(ROOT).as_posix()


def test_each_distribution_lies_where_members_are_looked_for() -> None:
    tops = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    results = {path.parent for top in tops for path in (*top.glob("pyproject.toml"), *top.glob("*/pyproject.toml"))}

    assert {folder for folder in results if "examples" not in folder.parts} == set(MEMBERS)
    assert (ROOT / "core" / "kernel") in MEMBERS


COMPILING = {"plugins/shared-memory": {"hatch_build.py"}}
"""What a member has besides, to compile a part of it."""


@pytest.mark.parametrize("member", MEMBERS, ids=named)
def test_each_member_has_the_same_shape(member: Path) -> None:
    results = {path.name for path in member.iterdir() if not path.name.startswith((".", "__")) and path.name != "dist"}

    assert results == {"LICENSE", "README.md", "pyproject.toml", "src", "tests"} | COMPILING.get(named(member), set())
    assert package(member).is_dir()
    assert (package(member) / "py.typed").read_text() == ""
    assert (member / "README.md").read_text().startswith(f"# {project(member)['project']['name']}\n")
    assert list((member / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("member", MEMBERS, ids=named)
def test_each_project_is_described_alike(member: Path) -> None:
    described, core = project(member), project(KERNEL)

    for same in ("version", "requires-python", "license", "readme"):
        assert described["project"][same] == core["project"][same]
    assert described["build-system"] == core["build-system"]
    assert described["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [
        f"src/{name}" for name in (package(member).name, *BESIDE.get(named(member), ()))
    ]
    assert described["project"]["description"]
    assert all("<" in dependency for dependency in described["project"]["dependencies"])


@pytest.mark.parametrize("member", PLUGINS, ids=named)
def test_each_plugin_needs_the_kernel_and_has_one_entry_point_named_as_its_folder(member: Path) -> None:
    described = project(member)["project"]

    assert described["name"] == f"naiad-{member.name}"
    assert any(dependency.startswith("naiad>=") for dependency in described["dependencies"])
    assert described["entry-points"]["naiad"] == {member.name: package(member).name}


def test_each_command_that_a_member_publishes_is_known_without_it() -> None:
    published = {
        command: described["name"]
        for described in (project(member)["project"] for member in MEMBERS)
        for command in described.get("entry-points", {}).get("naiad.commands", {})
    }

    assert {name: each.requirement.partition("[")[0] for name, each in PUBLISHED_COMMANDS.items()} == published


@pytest.mark.parametrize("member", PLUGINS, ids=named)
def test_a_plugins_package_holds_hook_implementations_and_nothing_else(member: Path) -> None:
    tree = ast.parse((package(member) / "__init__.py").read_text())

    others = [ast.unparse(node).splitlines()[0] for node in tree.body if not _belongs(node)]

    assert others == []


def _belongs(node: ast.stmt) -> bool:
    """Whether a statement is the docstring, an import, the public names, a lazy name, or a hook implementation."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in node.body)
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.FunctionDef(name="__getattr__"):
            return True
        case ast.FunctionDef(decorator_list=[ast.Name(id="hookimpl")]):
            return node.name.startswith("naiad_")
    return False


def test_make_finds_every_member_and_every_package() -> None:
    show = "show: ; @echo $(MEMBERS) && echo $(PACKAGES)"

    shown = subprocess.run(
        ["make", "--silent", "--eval", show, "show"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    folders, packages = (line.split() for line in shown.stdout.splitlines())
    assert sorted(folders) == sorted(named(member) for member in MEMBERS)
    assert sorted(packages) == sorted(name for member in members() for name in member.packages)


@pytest.mark.parametrize("page", ["README.md", "docs/design.md"])
def test_a_page_that_lists_the_distributions_names_every_member(page: str) -> None:
    text = (ROOT / page).read_text()

    missing = [member.distribution for member in members() if not re.search(rf"`{member.distribution}[`\[]", text)]

    assert missing == []


@pytest.mark.parametrize("member", [each for each in MEMBERS if each in PLUGINS or each.name == "cli"], ids=named)
def test_the_page_of_a_member_says_what_to_install_for_its_commands(member: Path) -> None:
    text = (member / "README.md").read_text()
    installed = [distributions_of(line) for line in re.findall(r"pip install ([^`#\n]*)", text)]
    commands = set(re.findall(r"^(naiad|serve) ", text, re.MULTILINE))

    assert installed
    assert all(project(member)["project"]["name"] in each for each in installed)
    assert not commands or all({"naiad-cli", "naiad-http", "naiad-grpc"} <= each for each in installed)


def distributions_of(words: str) -> set[str]:
    """The distributions of the workspace that `pip install` brings for these requirements."""
    projects = {each.distribution: each.project for each in members()}
    brought: set[tuple[str, str]] = set()
    pending = [Requirement(word) for word in shlex.split(words)]
    while pending:
        requirement = pending.pop()
        for extra in ("", *requirement.extras):
            if requirement.name in projects and (requirement.name, extra) not in brought:
                brought.add((requirement.name, extra))
                described = projects[requirement.name]
                texts = described["optional-dependencies"][extra] if extra else described["dependencies"]
                pending += map(Requirement, texts)
    return {name for name, _ in brought}


def test_every_python_file_starts_with_what_it_is_for() -> None:
    files = [path for member in MEMBERS for path in package(member).rglob("*.py")]

    bare = [path for path in files if "templates" not in path.parts and not is_described(path.read_text())]

    assert bare == []


def is_described(source: str) -> bool:
    """Whether a module has a docstring; most show it in their first characters, and need no parser."""
    return bool(re.match(r'"""\w', source) or ast.get_docstring(ast.parse(source)))


@pytest.mark.parametrize("member", members(), ids=lambda member: member.distribution)
def test_what_others_to_install_is_named_by_the_command_that_works_here(member: Member) -> None:
    """`pip install 'naiad-other'` fails in a checkout that lacks it; a member that is there finds its own extras."""
    if member.distribution == "naiad-config":
        return  # it has `install_command`
    texts = [text for module in member.modules if "install" in module.text for text in texts_of(module)]
    named = [name for text in texts for name in re.findall(r"pip install '(naiad[\w-]*)", text)]

    assert set(named) <= {member.distribution}


def texts_of(module: Module) -> list[str]:
    """The texts in a module, without its docstrings."""
    nodes = list(ast.walk(module.tree))
    documented = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in documented]
    return [node.value for node in constants if isinstance(node.value, str)]
