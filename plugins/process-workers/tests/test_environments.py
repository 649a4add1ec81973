"""Models with environments of their own."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from naiad.errors import NaiadError

from .conftest import Serve, Write

ONE = np.ones(1, np.float32)
BODY = "import sys, only_here; x = x * 0 + only_here.NUMBER; assert 'naiad_http' not in sys.modules"


@pytest.mark.parametrize("name", ["python", "EXECUTION_ENV_PATH"])
def test_a_model_runs_in_the_environment_that_it_names(
    write: Write, served: Serve, environment: Path, name: str
) -> None:
    model = write("m", body=BODY, isolation="", **{name: str(environment)})

    with served(model) as client:
        assert client.infer(X=ONE)["Y"].tolist() == [42]


def test_what_the_model_spawns_finds_the_models_functions(write: Write, served: Serve, environment: Path) -> None:
    twice = "import multiprocessing\n\ndef twice(x):\n    import only_here\n    return x * 2\n"
    with_pool = "with multiprocessing.get_context('spawn').Pool(1) as pool:\n    x = pool.apply(twice, (x,))"
    model = write("m", body=with_pool, python=str(environment))
    (model / "1" / "model.py").write_text(twice + (model / "1" / "model.py").read_text())

    with served(model) as client:
        assert client.infer(X=ONE)["Y"].tolist() == [3]


def test_an_interpreter_can_be_named_and_lie_in_the_models_folder(
    write: Write, served: Serve, environment: Path
) -> None:
    model = write("m", body=BODY, python="own/bin/python")
    (model / "own").symlink_to(environment)

    with served(model) as client:
        assert client.infer(X=ONE)["Y"].tolist() == [42]


def test_an_archive_is_unpacked_once(
    write: Write, served: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = write("m", body=BODY, EXECUTION_ENV_PATH="$$TRITON_MODEL_DIRECTORY/own.tar.gz")
    packages = Path(np.__file__).parents[1]
    content = {
        "bin/python": f'#!/bin/sh\nPYTHONPATH="$(dirname $0)/../lib:{packages}" exec {sys.executable} -S "$@"\n',
        "lib/only_here.py": "NUMBER = 41",
    }
    with tarfile.open(model / "own.tar.gz", "w:gz") as archive:
        for name, text in content.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))

    for _ in range(2):
        with served(model) as client:
            assert client.infer(X=ONE)["Y"].tolist() == [42]
    assert len(list((tmp_path / "cache" / "naiad" / "environments").iterdir())) == 1


@pytest.mark.parametrize("content", [b"no archive", b""])
def test_an_archive_that_is_none_is_refused(
    write: Write, served: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = write("m", EXECUTION_ENV_PATH="own.tar.gz")
    (model / "own.tar.gz").write_bytes(content)

    with pytest.raises(NaiadError, match="cannot be unpacked"), served(model):
        pass
    assert list((tmp_path / "cache" / "naiad" / "environments").iterdir()) == []


@pytest.mark.parametrize("name", ["python", "EXECUTION_ENV_PATH"])
def test_an_environment_that_is_not_there_is_refused(write: Write, served: Serve, name: str) -> None:
    model = write("m", **{name: "nowhere"})

    with pytest.raises(NaiadError, match=f"parameter '{name}' of model 'm'.*there is no"), served(model):
        pass


def test_a_folder_without_an_interpreter_is_refused(write: Write, served: Serve) -> None:
    with pytest.raises(NaiadError, match="there is no interpreter"), served(write("m", python="1")):
        pass


def test_an_environment_without_numpy_is_refused_with_the_reason(write: Write, served: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)

    model = write("m", python=str(folder))

    with pytest.raises(NaiadError, match=r"cannot run it: ModuleNotFoundError.*numpy"), served(model):
        pass
