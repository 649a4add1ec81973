"""Models with a requirements.txt beside their model.py, and environments that are built from it."""

import logging
import os
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from naiad.errors import NaiadError
from naiad_process_workers import requirements

from .conftest import Serve, Write

ONE = np.ones(1, np.float32)
BODY = "import sys, only_here; x = x * 0 + only_here.NUMBER; assert 'naiad_http' not in sys.modules"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of environments."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "naiad" / "environments"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with wheels of `only-here` in two versions, whose NUMBER is 10 times the version."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in (1, 2):
        name = f"only_here-{version}.0"
        with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("only_here.py", f"NUMBER = {10 * version}\n")
            described = f"Metadata-Version: 2.1\nName: only-here\nVersion: {version}.0\n"
            wheel.writestr(f"{name}.dist-info/METADATA", described)
            wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{name}.dist-info/RECORD", "")
    return folder


def require(model: Path, wheels: Path, *lines: str) -> None:
    text = "\n".join(["--no-index", f"--find-links {wheels}", *lines])
    (model / "1" / "requirements.txt").write_text(text + "\n")


def with_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements.shutil, "which", lambda name, path=None: None)


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_model_runs_in_an_environment_with_its_requirements(
    write: Write,
    served: Serve,
    wheels: Path,
    cache: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    installer: str,
) -> None:
    if installer == "pip":
        with_pip(monkeypatch)
    model = write("m", body=BODY, isolation="")
    require(model, wheels, "only-here==1.0")

    with caplog.at_level(logging.INFO):
        for _ in range(2):
            with served(model, allow_model_requirements=True) as client:
                assert client.infer(X=ONE)["Y"].tolist() == [11]

    built = f"building an environment from '{model}/1/requirements.txt' of model 'm' with {installer}"
    assert [record.getMessage() for record in caplog.records].count(built) == 1
    assert len(list(cache.iterdir())) == 1


def test_other_requirements_have_another_environment_also_those_in_included_files(
    write: Write, served: Serve, wheels: Path, cache: Path
) -> None:
    model = write("m", body=BODY, isolation="")
    require(model, wheels, "-r more.txt")
    for version in (1, 2):
        (model / "1" / "more.txt").write_text(f"only-here=={version}.0\n")

        with served(model, allow_model_requirements=True) as client:
            assert client.infer(X=ONE)["Y"].tolist() == [10 * version + 1]

    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize(("installer", "words"), [("uv", "only-there"), ("pip", "No matching distribution found")])
def test_a_build_that_fails_shows_the_installer_s_last_lines_and_leaves_nothing(
    write: Write, served: Serve, wheels: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, installer: str, words: str
) -> None:
    if installer == "pip":
        with_pip(monkeypatch)
    model = write("m", body=BODY, isolation="")
    require(model, wheels, "only-there==1.0")

    with pytest.raises(NaiadError) as raised, served(model, allow_model_requirements=True):
        pass

    assert f"no environment can be built from '{model}/1/requirements.txt' of model 'm': {installer} ended" in str(
        raised.value
    )
    assert words in str(raised.value)
    assert list(cache.iterdir()) == []


def test_without_the_option_a_model_that_lacks_nothing_runs_in_the_server_with_a_warning(
    write: Write, served: Serve, wheels: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = write("m", body="x = x * 0 + os.getpid()", isolation="")
    require(model, wheels, "only-here==1.0")

    with served(model) as client:
        assert client.infer(X=ONE)["Y"].tolist() == [os.getpid() + 1]

    (warning,) = [each.getMessage() for each in caplog.records if "requirements.txt" in each.getMessage()]
    assert f"'{model}/1/requirements.txt' is not installed" in warning
    assert "--allow-model-requirements" in warning
    assert not cache.exists()


@pytest.mark.parametrize("isolation", ["", "process"])
def test_without_the_option_a_model_that_lacks_a_package_fails_with_what_allows_it(
    write: Write, served: Serve, wheels: Path, isolation: str
) -> None:
    model = write("m", isolation=isolation)
    file = model / "1" / "model.py"
    file.write_text("import only_here\n" + file.read_text())
    require(model, wheels, "only-here==1.0")

    with pytest.raises(NaiadError, match=r"No module named 'only_here'; .*--allow-model-requirements"), served(model):
        pass


def test_isolation_thread_keeps_a_model_with_requirements_in_the_server(
    write: Write, served: Serve, wheels: Path, cache: Path
) -> None:
    model = write("m", body="x = x * 0 + os.getpid()", isolation="thread")
    require(model, wheels, "only-here==1.0")

    with served(model, allow_model_requirements=True) as client:
        assert client.infer(X=ONE)["Y"].tolist() == [os.getpid() + 1]
    assert not cache.exists()


def test_an_environment_that_the_model_names_comes_before_its_requirements(
    write: Write, served: Serve, wheels: Path, environment: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = write("m", body=BODY, isolation="", python=str(environment))
    require(model, wheels, "only-here==1.0")

    with served(model, allow_model_requirements=True) as client:
        assert client.infer(X=ONE)["Y"].tolist() == [42]

    assert not cache.exists()
    assert "is not installed" not in caplog.text


def test_requirements_of_a_python_based_backend_are_those_of_its_models(
    write: Write, served: Serve, wheels: Path, tmp_path: Path
) -> None:
    model = write("m", body=BODY, isolation="")
    (model / "config.pbtxt").write_text((model / "config.pbtxt").read_text().replace('"python"', '"tens"'))
    (tmp_path / "backends").mkdir()
    require(model, wheels, "only-here==2.0")
    (model / "1").rename(tmp_path / "backends" / "tens")
    (model / "1").mkdir()

    options = {"allow_model_requirements": True, "backend_directory": str(tmp_path / "backends")}
    with served(model, **options) as client:
        assert client.infer(X=ONE)["Y"].tolist() == [21]


def test_without_uv_and_pip_the_error_says_what_to_install(
    write: Write, served: Serve, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_pip(monkeypatch)
    monkeypatch.setattr(requirements, "PathFinder", SimpleNamespace(find_spec=lambda name: None))
    model = write("m", body=BODY, isolation="")
    require(model, wheels, "only-here==1.0")

    with (
        pytest.raises(NaiadError, match="the server has neither uv nor pip; install one beside it"),
        served(model, allow_model_requirements=True),
    ):
        pass
