"""Frameworks: which one is installed, without an import, and the error when one cannot be imported."""

import sys
from pathlib import Path

import pytest

from naiad.errors import PluginError
from naiad_kit.backends.frameworks import import_framework, installed_framework

STEP = "run pip install 'naiad-abacus[cpu]'"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages on the import path; what is imported from it is forgotten."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def install(packages: Path, distribution: str, version: str = "3.1") -> None:
    described = packages / f"{distribution.replace('-', '_')}-{version}.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")


def refusal() -> str:
    with pytest.raises(PluginError) as caught:
        import_framework("abacus", "the Abacus", "naiad-abacus", STEP)
    return str(caught.value)


def test_the_version_of_a_framework_comes_from_its_metadata_without_an_import(packages: Path) -> None:
    install(packages, "abacus")
    (packages / "abacus.py").write_text("raise SystemExit('imported')")

    assert installed_framework("abacus") == "abacus 3.1"


def test_a_build_for_other_devices_is_found_under_its_own_name(packages: Path) -> None:
    install(packages, "abacus-gpu")

    assert installed_framework("abacus") == "abacus-gpu 3.1"


def test_two_builds_of_one_module_are_named_with_what_to_do(packages: Path) -> None:
    install(packages, "abacus")
    install(packages, "abacus-openvino", "2.0")

    assert installed_framework("abacus") == (
        "abacus 3.1 and abacus-openvino 2.0, which share a module: uninstall all of them, and install one"
    )


def test_the_first_of_several_frameworks_that_is_installed_is_named(packages: Path) -> None:
    install(packages, "slide-rule", "1.0")
    install(packages, "abacus-cpu")

    assert installed_framework(("calculator", "slide-rule", "abacus")) == "slide-rule 1.0"


def test_a_framework_without_metadata_is_named_without_its_version(packages: Path) -> None:
    (packages / "slide_rule.py").write_text("raise SystemExit('imported')")

    assert installed_framework("slide-rule") == "slide_rule"


def test_there_is_no_version_of_a_framework_that_is_not_there() -> None:
    assert (installed_framework("abacus"), installed_framework(("abacus", "slide-rule")), installed_framework("")) == (
        ("", "", "")
    )


def test_a_framework_is_imported(packages: Path) -> None:
    (packages / "abacus.py").write_text("beads = 10")

    assert import_framework("abacus", "the Abacus", "naiad-abacus", STEP).beads == 10


def test_a_missing_framework_is_answered_with_what_to_install() -> None:
    assert refusal() == "naiad-abacus needs the Abacus, which is not installed; run pip install 'naiad-abacus[cpu]'"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "raise OSError('libbeads.so.2: cannot open shared object file')",
            "OSError: libbeads.so.2: cannot open shared",
        ),
        ("import no_such_beads", "ModuleNotFoundError: No module named 'no_such_beads'"),
        ("raise TypeError('Descriptors cannot be created directly.\\nThis is long')", "cannot be created directly.)"),
        ("raise AttributeError", "(AttributeError)"),
    ],
)
def test_a_broken_framework_is_distinguished_from_a_missing_one(packages: Path, source: str, reason: str) -> None:
    install(packages, "abacus")
    (packages / "abacus.py").write_text(source)

    said = refusal()

    assert said.startswith("naiad-abacus needs the Abacus, and what is installed, abacus 3.1, cannot be imported (")
    assert reason in said
    assert said.endswith("; fix that, or uninstall it and run pip install 'naiad-abacus[cpu]'")
