"""What make installs: enough for the tests of each member, no framework of others, and everything without a choice."""

import ast
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from .environments import members_of, needed, requires
from .house.workspace import Member, members
from .installing import (
    MEGABYTES,
    OF_EVERY_MEMBER,
    OF_MEMBERS,
    indexes_of_pip,
    install,
    megabytes_of,
    missing,
    needs_of,
)

ROOT = Path(__file__).parents[1]
IN_RAY = "naiad-ray"
"""Its framework has an environment of its own."""


_RUN = re.compile(r'"-m", "(\w+)')
"""A module that a test runs: `python -m ruff`."""


def imported(member: Member) -> set[str]:
    """The top-level modules that the tests of a member run, or import unconditionally."""
    names: set[str] = set()
    for path in (member.folder / "tests").rglob("*.py"):
        text = path.read_text()
        names |= {*_RUN.findall(text)}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names)


@cache
def providers() -> dict[str, list[str]]:
    """The distributions that bring each top-level module."""
    return dict(packages_distributions())


@pytest.mark.parametrize(
    "member", [each for each in members() if each.distribution != IN_RAY], ids=lambda member: member.name
)
def test_what_is_installed_for_a_member_is_enough_for_its_tests(member: Member) -> None:
    brings = providers()
    everything = members_of(each.distribution for each in members() if each.distribution != IN_RAY)
    installed = {name.lower() for each in everything for name in needed(requires(each))}
    installed |= {name.lower() for name in needed(["naiad-onnx[cpu]", *needs_of([member.name])])}

    lacking = {
        module
        for module in imported(member)
        if module in brings
        and not any(n.startswith("naiad") or normal(n) in map(normal, installed) for n in brings[module])
    }

    assert lacking == set()


def normal(name: str) -> str:
    """A name as pip compares it."""
    return name.lower().replace("_", "-")


def test_what_tests_of_members_need_is_in_the_list_of_all() -> None:
    lines = "\n".join((ROOT / name).read_text() for name in ("requirements-dev.txt", "requirements-examples.txt"))
    listed = {normal(Requirement(line).name) for line in lines.splitlines() if line and line[0] not in "#-"}
    needs = {normal(Requirement(each).name) for of_one in OF_MEMBERS.values() for each in of_one}
    needs |= {normal(Requirement(each).name) for each in OF_EVERY_MEMBER}

    assert needs - listed <= {"onnxruntime", "ml-dtypes"}  # which plugins/onnx and the kernel's tests bring
    assert {member.name for member in members()} >= set(OF_MEMBERS)


def test_the_size_counts_large_packages_and_what_is_there_is_not_fetched() -> None:
    assert megabytes_of(["torch", "h2", "tritonclient[http]"]) == MEGABYTES["torch"] + 2 + MEGABYTES["tritonclient"]
    assert missing(["pytest", "no-such-distribution[x]>=1"]) == ["no-such-distribution[x]>=1"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", ".installed-for-development"),
        ("core", ".installed-for-development"),
        ("tests", ".installed-for-development"),
        ("plugins/onnx tests/test_docs.py", ".installed-for-development"),
        ("plugins/onnx", ".tests-of-plugins-onnx"),
        ("plugins/onnx/tests/test_proof.py -x", ".tests-of-plugins-onnx"),
        ("plugins/onnx -k strings", ".tests-of-plugins-onnx"),
        ("-k strings", ".installed-for-development"),
        ("plugins/onnx core/cli", ".tests-of-core-cli+plugins-onnx"),
        ("core/cli core/config core/kernel core/kit core/tensors", ".tests-of-1289359503"),
    ],
)
def test_make_test_installs_what_its_arguments_need(arguments: str, expected: str) -> None:
    show = "show: ; @echo $(TESTABLE)"

    shown = subprocess.run(
        ["make", "--silent", "--eval", show, "show", f"ARGS={arguments}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert shown.stdout.strip() == f".venv/{expected}"


def test_uv_takes_the_indexes_of_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nindex-url = https://a.example/simple\nextra-index-url = file:///b\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)

    indexes = indexes_of_pip()

    assert (indexes["UV_DEFAULT_INDEX"], indexes["UV_INDEX"]) == ("https://a.example/simple", "file:///b")


def test_pip_installs_where_uv_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = tmp_path / "uv"
    broken.write_text("#!/bin/sh\nexit 2\n")
    broken.chmod(0o755)
    monkeypatch.setattr("tests.installing.UV", broken)
    monkeypatch.chdir(ROOT)

    assert install("Pytest", ["pytest"]) == 0

    assert re.fullmatch(r"Pytest \.\.\.\n  done: 0 MB fetched, \d+ s\n", capsys.readouterr().out)


def test_a_failed_installation_ends_with_what_pip_said() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.installing", "Nothing", "--", "--no-index", "no-such-distribution"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stdout.startswith("Nothing ...\n")
    assert "No matching distribution found for no-such-distribution" in done.stderr
